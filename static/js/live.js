// One socket that comes back: back-off with jitter, a cursor on every try, polling while sockets fail, and the badge.
import { serverNow } from "./times.js";

const FIRST = 250;
const LONGEST = 8000;
const SILENCE = 22000;
const POLL = 3000;
// Nothing for longer than a heartbeat and a half: a line that only looks open, as after a sleep.
const FRESH = 15000;

export class Live {
  // address(): socket path with cursor; poll(): fetches changes, resolves when applied; frame(message): applies one.
  constructor({ address, poll, frame }) {
    Object.assign(this, { address, poll, frame });
    this.tries = 0;
    this.badge = document.querySelector("[data-badge]");
    this.open();
    addEventListener("online", () => this.again());
    addEventListener("offline", () => this.away());
    addEventListener("pageshow", (event) => event.persisted && this.now());
    document.addEventListener("visibilitychange", () => !document.hidden && this.now());
  }

  open() {
    clearTimeout(this.timer);
    const url = new URL(this.address(), location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = (this.socket = new WebSocket(url));
    this.listen();
    socket.onmessage = (event) => {
      if (socket !== this.socket) return;
      this.listen();
      const message = JSON.parse(event.data);
      if (message.type === "hello") this.live();
      if (message.ts) serverNow(message.ts);
      this.frame(message);
    };
    socket.onclose = (event) => {
      if (socket !== this.socket) return;
      if (event.code === 4400 || event.code === 4401) return location.reload();
      this.lost();
    };
  }

  live() {
    this.tries = 0;
    this.since = null;
    clearInterval(this.polling);
    this.polling = null;
    this.show("live", "live");
  }

  // No word for longer than two heartbeats: the line is dead even if nobody has said so. Timers of a hidden page run when the
  // browser likes; what it missed is looked at when it is seen again.
  listen() {
    this.heard = Date.now();
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      if (document.hidden) return;
      this.drop();
      this.lost();
    }, SILENCE);
  }

  drop() {
    this.socket.onclose = null;
    this.socket.close();
  }

  // The machine itself says that it has no network.
  away() {
    this.since ||= new Date();
    this.show("stale", `offline since ${this.since.toISOString().slice(11, 16)}`);
  }

  again() {
    this.drop();
    this.show("reconnecting", "reconnecting");
    this.open();
  }

  lost() {
    clearTimeout(this.silence);
    this.since ||= new Date();
    this.tries += 1;
    const wait = Math.min(LONGEST, FIRST * 2 ** (this.tries - 1)) * (0.5 + Math.random() / 2);
    if (this.tries <= 2) this.show("reconnecting", "reconnecting");
    else this.show("stale", `stale since ${this.since.toISOString().slice(11, 16)}`);
    if (this.tries >= 3 && !this.polling) this.polling = setInterval(() => this.ask(), POLL);
    this.timer = setTimeout(() => this.open(), wait);
  }

  async ask() {
    try {
      await this.poll();
      if (this.polling) this.show("polling", "polling");
    } catch {
      this.since ||= new Date();
      this.show("stale", `stale since ${this.since.toISOString().slice(11, 16)}`);
    }
  }

  now() {
    if (this.socket.readyState > WebSocket.OPEN) this.open();
    else if (Date.now() - this.heard > FRESH) this.again();
  }

  say(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  show(state, word) {
    document.body.dataset.line = state;
    if (!this.badge) return;
    this.badge.dataset.state = state;
    const text = this.badge.querySelector("[data-badge-word]");
    if (text.textContent !== word) text.textContent = word;
  }
}
