// The inbox, and its number on every page. Rows of the fleet tell that something waits; a slow poll covers the rest.
import { Live } from "./live.js";
import { morph, parse } from "./patch.js";
import { say } from "./messages.js";
import { counted } from "./title.js";

const SLOWLY = 10000;
const GATHER = 120;
// However fast rows come, the number is asked for this often at most.
const GAP = 1500;
const GAP_HERE = 250;

export function startInbox() {
  const badge = document.querySelector("[data-asked]");
  if (!badge) return;
  const number = Number(badge.dataset.asked);
  counted(number);
  const root = document.getElementById("inbox");
  const page = root ? new Page(root, badge, number) : new Elsewhere(badge, number);
  document.addEventListener("rows", (event) => page.rows(event.detail));
  document.addEventListener("acted", () => page.soon());
  setInterval(() => page.soon(), SLOWLY);
  document.addEventListener("visibilitychange", () => !document.hidden && page.soon());
}

async function ask(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" } });
  // Sent to the sign-in page: the session is over.
  if (answer.redirected) return location.reload();
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
}

class Elsewhere {
  gap = GAP;
  asked = 0;

  constructor(badge, number) {
    Object.assign(this, { badge, number });
  }

  // Rows that wait now, or did until now.
  rows(patches) {
    const waited = (id) => document.getElementById(id || "-")?.dataset.status === "waiting";
    if (patches.some(({ id, html }) => html?.includes('data-status="waiting"') || waited(id))) this.soon();
  }

  soon() {
    if (document.hidden && globalThis.Notification?.permission !== "granted") return;
    const wait = Math.max(GATHER, this.asked + this.gap - performance.now());
    this.timer ||= setTimeout(async () => {
      this.timer = null;
      this.asked = performance.now();
      try {
        this.tell(await this.fetched());
      } catch {
        // The next turn of the clock asks again.
      }
    }, wait);
  }

  async fetched() {
    return (await ask("/live/inbox"))?.count;
  }

  tell(count) {
    if (count === undefined) return;
    if (count > this.number) notify(count);
    this.number = count;
    this.badge.dataset.asked = count;
    this.badge.hidden = !count;
    const text = String(count);
    const word = this.badge.querySelector("b");
    if (word.textContent !== text) word.textContent = text;
    counted(count);
  }
}

class Page extends Elsewhere {
  gap = GAP_HERE;

  constructor(root, badge, number) {
    super(badge, number);
    this.root = root;
    let seen = new Date(Date.now() - 5000).toISOString();
    root.pilothouse = {
      live: new Live({
        address: () => `/ws/fleet?format=html&since=${encodeURIComponent(seen)}`,
        frame: (message) => {
          if (message.ts) seen = message.ts;
          if (message.type === "patches") this.rows(message.patches);
        },
        poll: async () => this.tell(await this.fetched()),
      }),
    };
    button(root.querySelector("[data-notify]"));
  }

  rows(patches) {
    const here = (id) => id && this.root.querySelector(`[data-run="${CSS.escape(id.replace(/^run-/, ""))}"]`);
    if (patches.some(({ id, html }) => html?.includes('data-status="waiting"') || here(id))) this.soon();
  }

  async fetched() {
    const answer = await ask("/live/inbox?list=1");
    if (!answer) return;
    const old = document.getElementById("asks");
    const fresh = parse(answer.html);
    this.keep(old, fresh, answer.gone);
    morph(old, fresh);
    return answer.count;
  }

  // Somebody else was faster than the one who is typing here: the card stays, with what was typed and who answered.
  keep(old, fresh, gone) {
    for (const card of old.querySelectorAll("[data-ask]")) {
      const twin = fresh.querySelector(`#${CSS.escape(card.id)}`);
      if (twin || !written(card)) continue;
      const copy = card.cloneNode(true);
      const word = copy.querySelector("[data-gone]");
      word.hidden = false;
      word.textContent = gone[card.dataset.ask] ? `Answered. ${gone[card.dataset.ask]}` : "This is not asked any more.";
      if (!card.matches(".gone")) say(word.textContent, true);
      copy.classList.add("gone");
      for (const control of copy.querySelectorAll("button, .ask-later summary")) control.setAttribute("disabled", "");
      fresh.append(copy);
    }
  }
}

const written = (card) => [...card.querySelectorAll("[data-typed]")].some((field) => field.value !== field.defaultValue);

function button(node) {
  if (!node || !("Notification" in window)) return;
  const show = () => (node.hidden = Notification.permission !== "default");
  show();
  node.addEventListener("click", async () => {
    await Notification.requestPermission();
    show();
    say(Notification.permission === "granted" ? "You will be told while this page is open." : "The browser does not allow it.");
  });
}

function notify(count) {
  if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  const note = new Notification("Pilothouse", { body: count === 1 ? "A run waits for you." : `${count} runs wait for you.`, tag: "inbox" });
  note.onclick = () => {
    focus();
    note.close();
  };
}
