// <time data-since> counts up; every other <time> tells local and relative time on hover.
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
}

export function startTimes() {
  tick();
  setInterval(tick, 500);
  document.addEventListener("mouseover", (event) => {
    const time = event.target.closest?.("time");
    if (!time) return;
    const then = new Date(time.dateTime);
    time.title = `${time.dateTime}\n${then.toLocaleString()}\n${age((Date.now() + offset - then) / 1000)} ago`;
  });
}
