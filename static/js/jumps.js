// A link to an event leads to its row where that is on the page; the server finds the others.
export function startJumps(root) {
  root.addEventListener("click", (event) => {
    const link = event.target.closest("[data-jump]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const target = document.getElementById(link.dataset.jump);
    if (!target) return;
    event.preventDefault();
    // The same place twice is a jump too.
    history.replaceState(null, "", location.pathname + location.search);
    location.hash = link.dataset.jump;
    const stop = target.querySelector("summary") || target;
    if (stop === target) stop.tabIndex = -1;
    stop.focus({ preventScroll: true });
  });
}
