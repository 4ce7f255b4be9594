// Applies patches: each names an element by id and may be applied twice. Focus, open folds and typed text survive.
import { Idiomorph } from "../vendor/idiomorph/idiomorph.esm.js";
import { tick } from "./times.js";

const holder = document.createElement("template");

export function parse(html) {
  holder.innerHTML = html;
  return holder.content.firstElementChild;
}

const callbacks = {
  // A text that streams is the browser's own until its final form comes.
  // So is what somebody types into a field of its own.
  beforeNodeMorphed: (old, fresh) => !(old.dataset?.streaming && fresh.dataset?.streaming) && !(old.dataset?.typed !== undefined && fresh.dataset?.typed !== undefined),
  // What the reader has opened stays open; what counts up is not set back.
  beforeAttributeUpdated: (name, node) => !(name === "open" && node.localName === "details") && !(name === "title" && node.localName === "time") && name !== "data-busy",
  beforeNodeRemoved: (node) => !node.dataset?.keep,
};

export function morph(old, fresh) {
  tick(holder.content);
  Idiomorph.morph(old, fresh, { morphStyle: "outerHTML", ignoreActiveValue: true, restoreFocus: true, callbacks });
}

// Returns true if something new was put into the page.
export function apply(patch) {
  const fresh = parse(patch.html);
  if (!fresh) return false;
  const old = document.getElementById(patch.id);
  if (old) {
    morph(old, fresh);
    return false;
  }
  if (patch.op === "replace") return false;
  const target = document.getElementById(patch.target);
  if (!target) return false;
  tick(holder.content);
  if (patch.op === "prepend") target.prepend(fresh);
  else target.append(fresh);
  return true;
}
