// Before anything is drawn: the theme that was chosen in the admin holds here too.
(() => {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
