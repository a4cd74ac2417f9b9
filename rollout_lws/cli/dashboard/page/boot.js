// No module, so that it runs even where those of the page do not come or are not understood: it says that then.

addEventListener("error", () => {
  // From then on the page itself tells what fails.
  if (document.body?.dataset.live) return;
  document.getElementById("live-word").textContent = "incomplete";
  document.getElementById("lost").textContent = "This page was not loaded whole: reload it. If that does not help, the console of the browser says more.";
  document.getElementById("trouble").hidden = false;
}, true);
