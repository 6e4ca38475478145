// What makes pages livelier, and what they do without if need be.
(() => {
    const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

    // As console/words.py says it.
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

    // A log that is followed stays at its end, unless somebody has scrolled up to read.
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

    // Whether what is seen is followed, or may be old by now.
    document.addEventListener("htmx:sse:after:connection", () => { document.body.dataset.live = "yes"; });
    for (const name of ["htmx:sse:error", "htmx:sse:close"]) {
        document.addEventListener(name, () => { document.body.dataset.live = "no"; });
    }

    // One that is open is enough: of buttons that ask once more, and of menus.
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
