// The same as the server does for text from agents: escapes stripped, hidden characters shown. For textContent only.
const MOVES = /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[@-Z\\\-_]?/g;
const STRING = /(?:\x1b([\]PX^_])|([\x9d\x90\x98\x9e\x9f]))([^\x07\x1b\x9c\n]*)(?:\x07|\x1b\\|\x9c)?/g;
const STRINGS = { "]": "OSC", P: "DCS", X: "SOS", "^": "PM", _: "APC", "\x9d": "OSC", "\x90": "DCS", "\x98": "SOS", "\x9e": "PM", "\x9f": "APC" };
const MOST_OF_A_STRING = 200;
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\u{1bca0}-\u{1bca3}\u{1d159}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
const EMOJI = "[\\u2190-\\u2bff\\u{1f000}-\\u{1faff}]";
const GLUE = new RegExp(`(?<=${EMOJI})\\ufe0f(?!\\ufe0f)|(?<=[\\u2190-\\u2bff\\u{1f000}-\\u{1faff}\\ufe0f])\\u200d(?=${EMOJI})`, "gu");
const MARK = "[\\u0300-\\u036f\\u0483-\\u0489\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f]";
const PILE = new RegExp(`(${MARK}{3})(${MARK}+)`, "g");

export function visible(text) {
  const shown = text.replace(STRING, said).replace(MOVES, "");
  const kept = new Set([...shown.matchAll(GLUE)].map((match) => match.index));
  return shown
    .replace(HIDDEN, (c, at) => (kept.has(at) ? c : `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`))
    .replace(PILE, (_, first, rest) => `${first}⟨${rest.length} more marks⟩`);
}

function said(_, short, long, words) {
  let kind = STRINGS[short || long];
  if (kind === "OSC" && words.startsWith("8;")) {
    const cut = words.indexOf(";", 2);
    [kind, words] = ["link", cut < 0 ? "" : words.slice(cut + 1)];
  }
  if (!words) return "";
  const letters = [...words];
  const more = letters.length > MOST_OF_A_STRING ? ` … ${letters.length.toLocaleString("en-US")} characters` : "";
  return `⟨${kind} ${letters.slice(0, MOST_OF_A_STRING).join("")}${more}⟩`;
}
