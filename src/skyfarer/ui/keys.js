// Keys of all pages. It moves the focus and follows links that are there; it reads no text.
(() => {
  if (window.skyfarerKeys) return;
  window.skyfarerKeys = true;

  const GO_MS = 2000; // between g and the letter of a page
  const SEARCH = ".filter input, .field-long input";
  const ITEMS = ".service, .trace-row, .fall, .call-row a, .log-row a";
  let goingSince = -GO_MS;

  const shown = (selector) =>
    [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility());
  const isTyping = (element) =>
    element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName);

  const move = (steps) => {
    const items = shown(ITEMS);
    const at = items.indexOf(document.activeElement);
    const next = at < 0 ? 0 : Math.min(Math.max(at + steps, 0), items.length - 1);
    items[next]?.focus();
  };

  const inSearch = (event) => {
    if (event.key === "Escape") event.target.blur();
    else if (event.key === "ArrowDown") move(1);
    else return false;
    return true;
  };

  const anywhere = (event) => {
    const inList = document.activeElement.matches(ITEMS);
    if (event.timeStamp - goingSince < GO_MS) {
      goingSince = -GO_MS;
      const place = document.querySelector(`.place[data-key="${CSS.escape(event.key)}"]`);
      if (place) place.click();
      return Boolean(place);
    }
    if (event.key === "g") goingSince = event.timeStamp;
    else if (event.key === "/") shown(SEARCH)[0]?.focus();
    else if (event.key === "?") document.querySelector("dialog.help").showModal();
    else if (event.key === "a") document.querySelector(".refreshing").click();
    else if (event.key === "j" || (inList && event.key === "ArrowDown")) move(1);
    else if (event.key === "k" || (inList && event.key === "ArrowUp")) move(-1);
    else return false;
    return true;
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const help = document.querySelector("dialog.help");
    if (!help) return;
    let taken = false;
    if (help.open) {
      taken = event.key === "?";
      if (taken) help.close();
    } else if (event.target.matches(SEARCH)) taken = inSearch(event);
    else if (!isTyping(event.target)) taken = anywhere(event);
    if (taken) event.preventDefault();
  });
})();
