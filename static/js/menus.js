// Menus close on Escape and on a click elsewhere; dialogs open from links that also work as pages.
export function startMenus() {
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
    const opener = event.target.closest("[data-open]");
    if (opener) {
      const dialog = document.getElementById(opener.dataset.open);
      if (!dialog?.showModal || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      if (opener.getAttribute("aria-disabled") !== "true") openDialog(dialog);
    }
    const closer = event.target.closest("[data-close]");
    if (closer?.closest("dialog")) {
      event.preventDefault();
      closer.closest("dialog").close();
    }
    const focus = event.target.closest("[data-focus]");
    if (focus) {
      event.preventDefault();
      const field = document.getElementById(focus.dataset.focus);
      field?.scrollIntoView({ block: "center" });
      field?.focus();
    }
    if (event.target.closest("summary[aria-disabled=true]")) event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
}

export function openDialog(dialog) {
  mirror(dialog);
  if (!dialog.open) dialog.showModal();
  // What somebody may type into comes first, whatever button stands above it.
  dialog.querySelector('input:not([type="hidden"]), textarea')?.focus();
}

// What a dialog repeats from the live page, e.g. what a stop will cut.
export function mirror(root = document) {
  for (const copy of root.querySelectorAll("[data-mirror]")) {
    const source = document.getElementById(copy.dataset.mirror);
    if (source && copy.textContent !== source.textContent) copy.textContent = source.textContent;
  }
}
