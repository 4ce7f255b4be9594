// Keys: / filter, S steer, I interrupt dialog, J and K rows, E and W unfold and fold, ? the sheet. Nothing destructive.
import { openDialog } from "./menus.js";

const typing = (node) => node.closest?.("input, textarea, select, [contenteditable]");

// A link in an alert opens the dialog itself, so that stopping is one tap away.
function linked() {
  if (location.hash !== "#interrupt-dialog") return;
  [...document.querySelectorAll('[data-open="interrupt-dialog"]')].find((opener) => opener.offsetParent)?.click();
}

export function startKeys() {
  linked();
  window.addEventListener("hashchange", linked);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const act = KEYS[event.key.toLowerCase()];
    if (act?.()) event.preventDefault();
  });
}

const focus = (key) => () => {
  const field = document.querySelector(`[data-key="${key}"]`);
  field?.scrollIntoView({ block: "nearest" });
  field?.focus();
  return Boolean(field);
};

function move(step) {
  const links = [...document.querySelectorAll(".run-row .task-link, #run .turn")];
  if (!links.length) return false;
  const here = links.findIndex((link) => link === document.activeElement || link.contains(document.activeElement));
  const next = links[Math.min(links.length - 1, Math.max(0, here + step))];
  if (next.matches(".turn")) next.tabIndex = -1;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}

function fold(open) {
  const scope = document.activeElement?.closest(".turn") || document.querySelector("#turns");
  if (!scope) return false;
  for (const call of scope.querySelectorAll("details.call-fold")) call.open = open;
  return true;
}

const KEYS = {
  "?": () => {
    const sheet = document.getElementById("keys-sheet");
    if (sheet) openDialog(sheet);
    return Boolean(sheet);
  },
  "/": focus("/"),
  s: focus("s"),
  j: () => move(1),
  k: () => move(-1),
  e: () => fold(true),
  w: () => fold(false),
  i: () => {
    const dialog = document.getElementById("interrupt-dialog");
    const opener = document.getElementById("interrupt-open");
    if (!dialog || !opener || opener.getAttribute("aria-disabled") === "true" || !opener.offsetParent) return false;
    openDialog(dialog);
    return true;
  },
};
