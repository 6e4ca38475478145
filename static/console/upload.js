// Sends the chosen or dropped files one by one, and shows what became of each. Without it, the form sends them all.
(() => {
    const form = document.querySelector("form[data-uploads]");
    if (!form || !window.DataTransfer) return;
    const input = form.querySelector("input[type=file]");
    const AT_ONCE = 2, MOST_TRIES = 6;
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
    form.querySelector("button.main").after(" ", choose, folder);

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
        if (!files.length) return;
        if (!list) show();
        const workspace = form.elements.workspace.value;
        for (const file of files) {
            const row = document.createElement("li"), name = document.createElement("bdi");
            const bar = document.createElement("progress"), told = document.createElement("span");
            name.textContent = file.name;
            bar.max = 1;
            bar.value = 0;
            bar.setAttribute("aria-label", `Sent of ${file.name}`);
            row.append(name, " ", bar, " ", told);
            list.append(row);
            queue.push({file, workspace, bar, told, tries: 0});
        }
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
        // The network, a busy server or a limit of uploads: the same file is sent again later. It is never stored twice.
        if ([0, 429, 502, 503, 504].includes(request.status) && one.tries < MOST_TRIES) {
            const seconds = Number(request.getResponseHeader("Retry-After")) || 2 ** one.tries;
            one.told.textContent = `waits ${seconds} s to try again`;
            setTimeout(() => { queue.push(one); work(); }, seconds * 1000);
            return;
        }
        one.bar.remove();
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
        one.told.textContent = text;
        one.told.className = `is-${kind}`;
        if (!named) return;
        const link = document.createElement("a");
        link.href = named.page;
        link.textContent = `document ${named.document}`;
        one.told.after(" ", link);
    }

    async function filesOf(entry) {
        if (entry.isFile) return [await new Promise((done, fail) => entry.file(done, fail))];
        const reader = entry.createReader(), found = [];
        for (;;) {
            const some = await new Promise((done, fail) => reader.readEntries(done, fail));
            if (!some.length) return found;
            for (const each of some) found.push(...await filesOf(each));
        }
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
        if (!form.elements.workspace.value) { form.reportValidity(); return; }
        // The entries are gone after the first await.
        const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
        if (!entries.length) { add([...event.dataTransfer.files]); return; }
        for (const entry of entries) add(await filesOf(entry));
    });
    window.addEventListener("beforeunload", (event) => {
        if (left()) event.preventDefault();
    });
})();
