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
  write(old, fresh);
}

// Most patches change a few words, numbers and bars of a shape that stays. These are written where they stand, which
// costs a tenth of looking for what may have moved where; whatever has another shape is left to Idiomorph.
function write(old, fresh) {
  if (old.isEqualNode(fresh) || !callbacks.beforeNodeMorphed(old, fresh)) return;
  if (!alike(old, fresh)) {
    Idiomorph.morph(old, fresh, { morphStyle: "outerHTML", ignoreActiveValue: true, restoreFocus: true, callbacks });
    return;
  }
  attributes(old, fresh);
  let from = fresh.firstChild;
  for (let to = old.firstChild; to; ) {
    const [then, after] = [to.nextSibling, from.nextSibling];
    if (to.nodeType === Node.ELEMENT_NODE) write(to, from);
    else if (to.data !== from.data) to.data = from.data;
    [to, from] = [then, after];
  }
}

// Fields have a state of their own beside their attributes.
const FIELDS = new Set(["input", "textarea", "select", "option", "script", "template"]);

function alike(old, fresh) {
  if (old.nodeName !== fresh.nodeName || old.id !== fresh.id || FIELDS.has(old.localName)) return false;
  let from = fresh.firstChild;
  for (let to = old.firstChild; to; to = to.nextSibling) {
    if (!from || to.nodeType !== from.nodeType || to.nodeName !== from.nodeName || (to.id || "") !== (from.id || "")) return false;
    from = from.nextSibling;
  }
  return !from;
}

function attributes(old, fresh) {
  for (const { name, value } of fresh.attributes)
    if (old.getAttribute(name) !== value && callbacks.beforeAttributeUpdated(name, old)) old.setAttribute(name, value);
  if (old.attributes.length === fresh.attributes.length) return;
  for (const { name } of [...old.attributes])
    if (!fresh.hasAttribute(name) && callbacks.beforeAttributeUpdated(name, old)) old.removeAttribute(name);
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
