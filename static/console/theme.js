// Runs before the first paint: the theme that was chosen in the admin applies here too.
(() => {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
