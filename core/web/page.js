"use strict";
// Everything works without this script: it only shows changes as they come.
const main = document.getElementById("main");
const update = document.getElementById("update");
const live = main.dataset.live;
let isTyped = false;
main.addEventListener("input", () => { isTyped = true; });

function offer(words) {
  if (update.firstChild) return;
  const link = document.createElement("a");
  link.href = "";
  link.textContent = "Show it now";
  update.append(words, " ", link);
}

async function look() {
  const answer = await fetch(location.href, { credentials: "same-origin" });
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = next.getElementById("main");
  if (!answer.ok || !found) { offer("This page is out of date."); return; }
  if (live === "request") {
    // The text under a finger never changes.
    if (found.dataset.shown !== main.dataset.shown) offer("The request has changed, or was answered.");
    return;
  }
  if (main.innerHTML === found.innerHTML) return;
  if (isTyped) { offer("This run has changed."); return; }
  const focused = document.activeElement && document.activeElement.getAttribute("href");
  main.replaceChildren(...found.childNodes);
  document.title = next.title;
  if (focused) {
    const again = [...main.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused);
    if (again) again.focus();
  }
}

if (live && window.EventSource) {
  new EventSource("/changes").addEventListener("change", () => { look().catch(() => {}); });
}
