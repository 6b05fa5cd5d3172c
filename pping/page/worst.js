// The worst flows and groups, by one of their figures: asked for while they are looked at.

import { below } from "./address.js";
import { Keyed, el, mark, write } from "./dom.js";
import { count, cut, share, shown, side, time } from "./format.js";

/** How many of each. */
const LIMIT = 20;

/** Characters of a label that a row has; all are in its title. */
const LABEL = 120;

/** An address and a port, as others write them. */
const end = (address, port) => (address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`);

/** What is the same of flows and groups: their figures, and how they are named. */
function ofFlow(flow) {
    const name = `${end(flow.src_ip, flow.src_port)} + ${end(flow.dest_ip, flow.dest_port)}`;
    return {
        key: `${name} ${flow.protocol} ${flow.interface} ${flow.matched}`,
        figures: [flow.smoothed_rtt, flow.inflation, flow.retransmissions, flow.bytes],
        words: [side(flow.matched), flow.method], name, group: flow.group,
    };
}

function ofGroup({ id, group, ranked_rtt: rtt, inflation, retransmissions, series }) {
    return {
        key: id,
        figures: [rtt, inflation, retransmissions, series.sent.bytes + series.received.bytes],
        words: [side(series.matched), series.method], name: group, link: `#/groups/${id}`,
    };
}

const TEXTS = [time, time, share, count];

/** A row of either table. */
function row() {
    const numbers = TEXTS.map(() => el("td"));
    const words = [0, 1].map(() => el("td", { className: "text" }));
    const name = el("bdi");
    const link = el("a", {}, name);
    const group = el("bdi", { className: "muted" });
    const element = el("tr", {}, ...numbers, ...words, el("th", { scope: "row", className: "text c-group" }, link, " ", group));
    const update = (of) => {
        numbers.forEach((cell, index) => {
            const value = of.figures[index];
            write(cell, value === null ? "-" : TEXTS[index](value));
            mark(cell, "data-value", value);
        });
        words.forEach((cell, index) => write(cell, shown(of.words[index])));
        write(name, cut(shown(of.name), LABEL));
        mark(link, "title", shown(of.name));
        mark(link, "href", of.link ?? null);
        write(group, of.group ? cut(shown(of.group), LABEL) : "");
    };
    return { element, update };
}

/** The two tables, and the choice of what they are ranked by. */
export class Worst {
    #element = document.getElementById("worst");
    #by = document.getElementById("worst-by");
    #evidence = document.getElementById("evidence");
    #tables = ["worst-flows", "worst-groups"].map((id) => {
        const body = document.getElementById(id);
        return { rows: new Keyed(body, row), none: document.getElementById(`${id}-none`) };
    });

    /** `onChange()` is called when something else is to be asked. */
    constructor(onChange) {
        this.#element.addEventListener("toggle", onChange);
        this.#by.addEventListener("change", onChange);
    }

    /** What to ask, or nothing while it is closed. */
    url() {
        return this.#element.open ? below(`api/v1/worst?by=${this.#by.value}&limit=${LIMIT}`) : null;
    }

    /** Shows an answer. */
    update({ evidence, flows, groups }) {
        write(this.#evidence, `Of those with ${count(evidence)} packets each way, or ${count(evidence)} samples.`);
        [flows.map(ofFlow), groups.map(ofGroup)].forEach((all, index) => {
            const { rows, none } = this.#tables[index];
            none.hidden = all.length > 0;
            rows.update(all.map(({ key }) => key)).forEach((row, at) => row.update(all[at]));
        });
    }
}
