// UTC beside local time in the header.
const two = (n) => String(n).padStart(2, "0");

export function startClock() {
  const root = document.querySelector("[data-clock]");
  if (!root) return;
  const utc = root.querySelector("[data-clock-utc]");
  const local = root.querySelector("[data-clock-local]");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
  const city = zone.includes("/") ? zone.split("/").pop().replaceAll("_", " ") : "";
  const tick = () => {
    const now = new Date();
    utc.textContent = `${two(now.getUTCHours())}:${two(now.getUTCMinutes())}:${two(now.getUTCSeconds())}`;
    local.textContent = now.getTimezoneOffset() ? ` · ${two(now.getHours())}:${two(now.getMinutes())} ${city}` : "";
    setTimeout(tick, 1000 - (Date.now() % 1000));
  };
  tick();
}
