// <time data-since> counts up, <time data-until> down; every other <time> tells local and relative time on hover.
export function age(seconds) {
  const s = Math.max(0, seconds);
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} m`;
  return `${Math.floor(s / 86400)} d`;
}

// The server's clock decides: what this machine's clock is off is taken from the page's own heartbeats.
let offset = 0;
export function serverNow(iso) {
  const seen = Date.parse(iso) - Date.now();
  if (Math.abs(seen) > 2000) offset = seen;
}

export function tick(root = document) {
  const now = Date.now() + offset;
  for (const time of root.querySelectorAll("time[data-since]")) {
    const text = age((now - Date.parse(time.dateTime)) / 1000);
    if (time.textContent !== text) time.textContent = text;
  }
  for (const time of root.querySelectorAll(local ? "time" : "time[data-utc]")) place(time);
  for (const time of root.querySelectorAll("time[data-until]")) {
    const left = (Date.parse(time.dateTime) - now) / 1000;
    const text = left > 0 ? `in ${age(left)}` : `${age(-left)} ago`;
    if (time.textContent !== text) time.textContent = text;
  }
}

// Times are written in UTC. Who would rather read them as the wall clock has them keeps that wish in this browser.
let local = false;
const two = (n) => String(n).padStart(2, "0");

function place(time) {
  if (time.dataset.since !== undefined || time.dataset.until !== undefined) return;
  if (!local) {
    if (time.dataset.utc) time.textContent = time.dataset.utc;
    delete time.dataset.utc;
    return;
  }
  const utc = (time.dataset.utc ||= time.textContent);
  const then = new Date(time.dateTime);
  if (Number.isNaN(then.valueOf())) return;
  const day = `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())}`;
  const clock = `${two(then.getHours())}:${two(then.getMinutes())}`;
  const forms = { 5: clock, 8: `${clock}:${two(then.getSeconds())}`, 16: `${day} ${clock}` };
  const text = forms[utc.trim().length];
  if (text && time.textContent !== text) time.textContent = text;
}

function startZone() {
  const button = document.querySelector("[data-zone-switch]");
  const show = () => {
    document.documentElement.dataset.zone = local ? "local" : "utc";
    if (button) button.textContent = local ? "Times in UTC" : "Times as my clock";
    tick();
  };
  local = localStorage.getItem("zone") === "local";
  if (button) button.hidden = false;
  button?.addEventListener("click", () => {
    local = !local;
    localStorage.setItem("zone", local ? "local" : "utc");
    show();
    button.closest("details")?.removeAttribute("open");
  });
  show();
}

export function startTimes() {
  startZone();
  setInterval(tick, 500);
  document.addEventListener("mouseover", (event) => {
    const time = event.target.closest?.("time");
    if (!time) return;
    const then = new Date(time.dateTime);
    time.title = `${time.dateTime}\n${then.toLocaleString()}\n${age((Date.now() + offset - then) / 1000)} ago`;
  });
}
