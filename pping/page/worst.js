// The worst flows and groups, by one of their figures. They are asked for only while they are visible.

import { relativeUrl } from "./address.js";
import { Keyed, el, mark, write } from "./dom.js";
import { count, cut, sanitized, share, side, time } from "./format.js";

/** The highest number of each. */
const LIMIT = 20;

/** The longest label in a row, characters. Its title has all of it. */
const LABEL = 120;

/** Formats an address and a port in the usual way. */
const end = (address, port) => (address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`);

/** Returns what flows and groups have in common: their figures and their names. */
function ofFlow(flow) {
    const name = `${end(flow.src_ip, flow.src_port)} + ${end(flow.dest_ip, flow.dest_port)}`;
    return {
        key: `${name} ${flow.protocol} ${flow.interface} ${side(flow)}`,
        figures: [flow.smoothed_rtt, flow.inflation, flow.retransmissions, flow.bytes],
        words: [flow.interface ?? "-", side(flow), flow.method], name,
        group: [flow.group, networkOf(flow)].filter(Boolean).join(", "),
    };
}

/** Returns the network at the other end of a flow: that of the host outside, if pping tells sides apart, or else that of the host that replies. */
function networkOf({ side: of, src_network: source, dest_network: destination }) {
    return of === "inside" ? destination : source;
}

function ofGroup({ id, group, ranked_rtt: rtt, inflation, retransmissions, series }) {
    return {
        key: id,
        figures: [rtt, inflation, retransmissions, series.sent.bytes + series.received.bytes],
        words: [series.interface ?? "-", side(series), series.method], name: group, of: { id, group },
    };
}

const TEXTS = [time, time, share, count];

/** Makes a row of either table. */
function row() {
    const numbers = TEXTS.map(() => el("td"));
    const words = [0, 1, 2].map(() => el("td", { className: "text" }));
    const name = el("bdi");
    const link = el("a", {}, name);
    const group = el("bdi", { className: "muted" });
    const element = el("tr", {}, ...numbers, ...words, el("th", { scope: "row", className: "text c-group" }, link, " ", group));
    const update = (of, linkTo) => {
        numbers.forEach((cell, index) => {
            const value = of.figures[index];
            write(cell, value === null ? "-" : TEXTS[index](value));
            mark(cell, "data-value", value);
        });
        words.forEach((cell, index) => write(cell, sanitized(of.words[index])));
        write(name, cut(sanitized(of.name), LABEL));
        mark(link, "title", sanitized(of.name));
        mark(link, "href", of.of ? linkTo(of.of) : null);
        write(group, of.group ? cut(sanitized(of.group), LABEL) : "");
    };
    return { element, update };
}

/** The two tables, and the choice of the figure that ranks. */
export class Worst {
    #element = document.getElementById("worst");
    #by = document.getElementById("worst-by");
    #minSamples = document.getElementById("min-samples");
    #tables = ["worst-flows", "worst-groups"].map((id) => {
        const body = document.getElementById(id);
        return { rows: new Keyed(body, row), none: document.getElementById(`${id}-none`) };
    });

    /** `onChange()` is called when there is something else to ask. */
    constructor(onChange) {
        this.#element.addEventListener("toggle", onChange);
        this.#by.addEventListener("change", onChange);
    }

    /** Returns what to ask, or null while the tables are closed. */
    url() {
        return this.#element.open ? relativeUrl(`api/v1/worst?by=${this.#by.value}&limit=${LIMIT}`) : null;
    }

    /** Shows an answer. `link(group)` gives the address of a group's page. */
    update({ min_samples: minSamples, flows, groups }, link) {
        write(this.#minSamples, `Of those with ${count(minSamples)} packets each way, or ${count(minSamples)} samples.`);
        [flows.map(ofFlow), groups.map(ofGroup)].forEach((all, index) => {
            const { rows, none } = this.#tables[index];
            none.hidden = all.length > 0;
            rows.update(all.map(({ key }) => key)).forEach((row, at) => row.update(all[at], link));
        });
    }
}
