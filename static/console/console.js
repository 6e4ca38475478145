// Enhancements of pages, which also work without this script.
(() => {
    const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

    // The same wording as in console/words.py.
    function ago(moment) {
        const seconds = (Date.now() - moment) / 1000;
        if (Math.abs(seconds) < 5) return seconds >= 0 ? "just now" : "in a moment";
        const [unit, ofIt] = UNITS.find(([, each]) => Math.abs(seconds) >= each);
        const number = `${Math.floor(Math.abs(seconds) / ofIt)} ${unit}`;
        return seconds > 0 ? `${number} ago` : `in ${number}`;
    }

    function tellTimes() {
        for (const time of document.querySelectorAll("time[data-ago]")) {
            const said = ago(Date.parse(time.dateTime));
            if (time.textContent !== said) time.textContent = said;
        }
    }
    setInterval(tellTimes, 5000);

    // Keep a live log scrolled to its end, unless the user has scrolled up to read.
    function follow() {
        for (const log of document.querySelectorAll("[data-follow]")) {
            if (log.dataset.paused === undefined) log.scrollTop = log.scrollHeight;
        }
    }
    document.addEventListener("scroll", (event) => {
        const log = event.target;
        if (!(log instanceof Element) || log.dataset.follow === undefined) return;
        if (log.scrollTop + log.clientHeight >= log.scrollHeight - 8) delete log.dataset.paused;
        else log.dataset.paused = "";
    }, true);
    follow();
    document.addEventListener("htmx:after:swap", follow);

    // Show whether the page is updated live, or may be out of date.
    document.addEventListener("htmx:sse:after:connection", () => { document.body.dataset.live = "yes"; });
    for (const name of ["htmx:sse:error", "htmx:sse:close"]) {
        document.addEventListener(name, () => { document.body.dataset.live = "no"; });
    }

    // Only one confirmation is open at a time; Escape closes an open confirmation or menu.
    document.addEventListener("toggle", (event) => {
        if (!event.target.open || !event.target.matches("details.act")) return;
        for (const other of document.querySelectorAll("details.act[open]")) if (other !== event.target) other.open = false;
    }, true);
    document.addEventListener("keydown", (event) => {
        const open = event.key === "Escape" && document.activeElement?.closest("details.act[open], details.menu[open]");
        if (!open) return;
        open.open = false;
        open.querySelector("summary").focus();
    });
})();
