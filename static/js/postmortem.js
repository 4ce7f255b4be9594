// The picture of a postmortem: its buttons and a drag over the lanes show another part of the run, without leaving.
const page = document.getElementById("postmortem");

const picture = () => document.getElementById("pm-picture");

async function show(query) {
  const answer = await fetch(`?part=picture&${query}`, { headers: { Accept: "text/html" } });
  if (!answer.ok) return location.assign(`?${query}#pm-picture`);
  const made = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("pm-picture");
  const focused = document.activeElement?.getAttribute?.("aria-label");
  picture().replaceWith(made);
  history.replaceState(null, "", query ? `?${query}` : location.pathname);
  if (focused) made.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
}

// How far into the picture a pointer is, from 0 to 1: rails of all lanes begin and end alike.
function share(event) {
  const rail = picture().querySelector(".pm-row").getBoundingClientRect();
  return Math.min(1, Math.max(0, (event.clientX - rail.left) / rail.width));
}

function drag() {
  let from = null;
  page.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button === 0 && event.target.closest(".pm-lanes")) from = share(event);
  });
  page.addEventListener("dragstart", (event) => {
    if (event.target.closest?.(".pm-lanes")) event.preventDefault();
  });
  window.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const [left, right] = [from, share(event)].sort((a, b) => a - b);
    from = null;
    // A mere click is none: marks are links.
    if (right - left < 0.02) return;
    const { start, end } = picture().dataset;
    const at = (part) => Math.round(Number(start) + part * (end - start));
    page.addEventListener("click", (click) => click.preventDefault(), { capture: true, once: true });
    setTimeout(() => show(`from=${at(left)}&to=${at(right)}`));
  });
}

if (page) {
  page.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-zoom]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show(new URL(link.href).search.slice(1));
  });
  drag();
}
