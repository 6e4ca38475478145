// Sends the chosen or dropped files one by one, and shows what became of each. Without it, the form sends them all.
(() => {
    const form = document.querySelector("form[data-uploads]");
    if (!form || !window.DataTransfer) return;
    const input = form.querySelector("input[type=file]");
    // One at a time: two files with the same bytes that arrive at once might both be stored.
    const AT_ONCE = 1, MOST_TRIES = 6;
    const counts = {stored: 0, there: 0, refused: 0};
    const queue = [];
    let list, summary, active = 0, total = 0;

    // A second button chooses a folder, with everything in it.
    const folder = document.createElement("input");
    folder.type = "file";
    folder.webkitdirectory = true;
    folder.hidden = true;
    const choose = document.createElement("button");
    choose.type = "button";
    choose.textContent = "Choose a folder";
    choose.addEventListener("click", () => folder.click());
    folder.addEventListener("change", () => { add([...folder.files]); folder.value = ""; });
    const hint = document.createElement("span");
    hint.className = "quiet";
    hint.textContent = " or drop files and folders anywhere on this page.";
    form.querySelector("button.main").after(" ", choose, hint, folder);

    function show() {
        const template = document.getElementById("uploading");
        form.after(template.content.cloneNode(true));
        summary = document.querySelector("[data-summary]");
        list = summary.parentElement.querySelector(".uploads");
    }

    // How many are waiting, on their way, or waiting to be sent again.
    const left = () => total - counts.stored - counts.there - counts.refused;

    function tell() {
        const parts = [`${counts.stored} of ${total} stored`];
        if (counts.there) parts.push(`${counts.there} already there`);
        if (counts.refused) parts.push(`${counts.refused} refused`);
        summary.textContent = `${parts.join(", ")}${left() ? ". Keep this page open." : "."}`;
    }

    function add(files) {
        if (!files.length || !form.elements.workspace.reportValidity()) return;
        const workspace = form.elements.workspace.value;
        for (const file of files) queue.push({file, workspace, tries: 0, ...line(file.name)});
        total += files.length;
        tell();
        work();
    }

    function work() {
        while (active < AT_ONCE && queue.length) send(queue.shift());
    }

    function send(one) {
        active += 1;
        one.tries += 1;
        one.bar.value = 0;
        one.told.textContent = "";
        const body = new FormData(), request = new XMLHttpRequest();
        body.set("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
        body.set("workspace", one.workspace);
        body.set("file", one.file, one.file.name);
        request.upload.addEventListener("progress", (event) => {
            if (event.lengthComputable) one.bar.value = event.loaded / event.total;
        });
        request.addEventListener("loadend", () => { active -= 1; ended(one, request); work(); });
        request.open("POST", form.action);
        request.setRequestHeader("Accept", "application/json");
        request.responseType = "json";
        request.send(body);
    }

    function ended(one, request) {
        const answer = request.response;
        // The network, a busy server or a limit of uploads: the same file is sent again later. If it was stored, the
        // server says that it is already there.
        if ([0, 429, 502, 503, 504].includes(request.status) && one.tries < MOST_TRIES) {
            const seconds = Number(request.getResponseHeader("Retry-After")) || 2 ** one.tries;
            one.told.textContent = `waits ${seconds} s to try again`;
            setTimeout(() => { queue.push(one); work(); }, seconds * 1000);
            return;
        }
        if (request.status === 201) say(one, "stored", "stored", answer);
        else if (request.status === 409 && answer) say(one, "there", "already there", answer);
        else say(one, "refused", `refused: ${answer?.error || reason(request)}`);
        tell();
    }

    function reason(request) {
        if (!request.status) return "The server did not answer.";
        return request.status === 403 || request.status === 200
            ? "You are signed out, or may not add documents. Sign in and choose the file again."
            : `The server answered ${request.status}.`;
    }

    function say(one, kind, text, named) {
        counts[kind] += 1;
        one.bar.remove();
        one.told.textContent = text;
        one.told.className = `is-${kind}`;
        if (!named) return;
        const link = document.createElement("a");
        link.href = named.page;
        link.textContent = `document ${named.document}`;
        one.told.after(" ", link);
    }

    // Adds the files of an entry that was dropped, as soon as they are found. What cannot be read is refused.
    async function addEntry(entry) {
        try {
            if (entry.isFile) {
                add([await new Promise((done, fail) => entry.file(done, fail))]);
                return;
            }
            const reader = entry.createReader();
            for (;;) {
                const some = await new Promise((done, fail) => reader.readEntries(done, fail));
                if (!some.length) return;
                for (const each of some) await addEntry(each);
            }
        } catch {
            say(line(entry.name), "refused", "refused: it could not be read.");
            total += 1;
            tell();
        }
    }

    // Returns a new line of the list for a file.
    function line(called) {
        if (!list) show();
        const row = document.createElement("li"), name = document.createElement("bdi");
        const bar = document.createElement("progress"), told = document.createElement("span");
        name.textContent = called;
        bar.max = 1;
        bar.value = 0;
        bar.setAttribute("aria-label", `Sent of ${called}`);
        row.append(name, " ", bar, " ", told);
        list.append(row);
        return {bar, told};
    }

    form.addEventListener("submit", (event) => {
        if (!input.files.length || !form.elements.workspace.value) return;
        event.preventDefault();
        add([...input.files]);
        input.value = "";
    });
    document.addEventListener("dragover", (event) => {
        if (!event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        document.body.classList.add("dropping");
    });
    document.addEventListener("dragleave", (event) => {
        if (!event.relatedTarget) document.body.classList.remove("dropping");
    });
    document.addEventListener("drop", async (event) => {
        if (!event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        document.body.classList.remove("dropping");
        if (!form.elements.workspace.reportValidity()) return;
        // The entries are gone after the first await.
        const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
        if (!entries.length) { add([...event.dataTransfer.files]); return; }
        for (const entry of entries) await addEntry(entry);
    });
    window.addEventListener("beforeunload", (event) => {
        if (left()) event.preventDefault();
    });
})();
