// Short notices that the server's own messages also use.
export function startMessages() {
  for (const line of document.querySelectorAll("#messages .message:not(.error)")) setTimeout(() => line.remove(), 4000);
}

export function say(text, bad = false) {
  const box = document.getElementById("messages");
  if (!box || !text) return;
  const line = document.createElement("p");
  line.className = bad ? "message error" : "message success";
  line.textContent = text;
  box.append(line);
  setTimeout(() => line.remove(), bad ? 9000 : 4000);
}
