// The health of pping: warnings, losses, untracked packets, and cost. It is one line, which opens to a table of meanings and advice.

import { relativeUrl } from "./address.js";
import { Keyed, el, write } from "./dom.js";
import { count, sanitized, share } from "./format.js";

/** Describes the cost of pping. */
function cost({ cpu, memory, programs }) {
    const kernel = programs === null ? "" : `, its kernel programs ${share(programs)}`;
    return `pping takes ${share(cpu)} of a core and ${(memory / 2 ** 20).toFixed(0)} MiB of memory${kernel}`;
}

/** Makes a row for a reason. */
function row() {
    const cells = ["number", "text", "text", "text"].map((className) => el("td", { className }));
    const update = (texts) => cells.forEach((cell, index) => write(cell, texts[index]));
    return { element: el("tr", {}, ...cells), update };
}

/** Returns numbers by their keys, each with its texts, if they are known. */
function explained(numbers, reasons) {
    const words = new Map(reasons.map((reason) => [reason.key, reason]));
    return Object.entries(numbers).map(([key, number]) => ({ key, name: sanitized(key), what: "", advice: "", ...words.get(key), number }));
}

/** The line, and the table below it. */
export class Health {
    #element = document.getElementById("health");
    #warnings = document.getElementById("warnings");
    #losses = document.getElementById("losses");
    #untracked = document.getElementById("untracked");
    #cost = document.getElementById("cost");
    #rows = new Keyed(document.getElementById("reasons"), row);
    /** The texts of reasons, asked for once. */
    #reasons = { losses: [], untracked: [] };
    #latest = null;

    constructor() {
        this.#element.addEventListener("toggle", () => this.#show());
        this.#learn();
    }

    /** Asks for the texts, which do not change while pping runs. Without them, the page shows the numbers. */
    async #learn() {
        try {
            const response = await fetch(relativeUrl("assets/reasons.json"));
            if (response.ok) this.#reasons = await response.json();
        } catch {
            return;
        }
        if (this.#latest) this.update(this.#latest);
    }

    /** Shows a summary. */
    update(summary) {
        this.#latest = summary;
        const line = (element, title, items) => write(element, items.length > 0 ? `${title}: ${items.join(", ")}.` : "");
        const items = (of) => of.filter(({ number }) => number > 0).map(({ number, name }) => `${count(number)} ${name}`);
        write(this.#warnings, (summary.warnings ?? []).map((warning) => `${sanitized(warning)}.`).join(" "));
        line(this.#losses, "Lost", items(this.#lost()));
        line(this.#untracked, "Not tracked", items(this.#notTracked()));
        write(this.#cost, `${cost(summary.cost)}.`);
        this.#show();
    }

    #lost() {
        const { untracked, ...losses } = this.#latest.losses;
        return explained(losses, this.#reasons.losses);
    }

    #notTracked() {
        const { untracked } = this.#latest.losses;
        return explained(untracked, this.#reasons.untracked).sort((one, other) => other.number - one.number);
    }

    #show() {
        if (!this.#element.open || !this.#latest) return;
        const all = [...this.#lost(), ...this.#notTracked()];
        this.#rows.update(all.map(({ key }) => key)).forEach((row, index) => {
            const { number, name, what, advice } = all[index];
            row.update([count(number), name, what, number > 0 ? advice : ""]);
        });
    }
}
