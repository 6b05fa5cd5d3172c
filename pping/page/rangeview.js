// What the page shows of a range: its name, its heatmaps and lines, and its worst groups.

import { RANKED, rowsOfRanking } from "./columns.js";
import { write } from "./dom.js";
import { duration, sanitized } from "./format.js";
import { Table } from "./table.js";

const byId = (id) => document.getElementById(id);

/** Describes the lengths of the intervals: where only longer ones are left of the week before, both. */
function intervals(history, before) {
    const [present, earlier] = [history, before ?? history].map(({ cell }) => duration(cell / 1e9));
    return `intervals of ${present}${earlier === present ? "" : `; a week before, of ${earlier}`}`;
}

/** Describes what is missing yet, or why. */
function progress({ range, history, before, problems }) {
    if (problems.length > 0) return problems.map(sanitized).join(" ");
    if (!history) return "Reading the history …";
    return range.isCompared && !before ? "Reading the week before …" : "";
}

/** The view of a range. */
export class RangeView {
    #panels;
    #worst = new Table(byId("worst-of-range"), RANKED);

    constructor(panels) {
        this.#panels = panels;
    }

    /** Names what is shown: a range, or for null the last 15 minutes. */
    announce(range) {
        write(byId("past"), range ? range.name : "Last 15 minutes");
        write(byId("now"), range ? "Groups now" : "Groups");
        byId("of-range").hidden = !range;
        byId("key-before").hidden = !range?.isCompared;
        if (!range) this.#say({ damaged: [], progress: "", intervals: "" });
    }

    #say({ damaged, progress, intervals }) {
        write(byId("damaged"), damaged.length > 0 ? `Left out of the range: ${damaged.map(sanitized).join("; ")}.` : "");
        byId("damaged").hidden = damaged.length === 0;
        write(byId("range-state"), progress);
        write(byId("intervals"), intervals);
    }

    /** Shows what there is of a range: of an answer those series that `choose` returns. `link(group)` gives the address of a group's page. */
    update(found, choose, link) {
        const { range, history, before, worst } = found;
        const damaged = [...new Set([history, before, worst].flatMap((answer) => answer?.damaged ?? []))];
        this.#say({ damaged, progress: progress(found), intervals: history ? intervals(history, before) : "" });
        this.#worst.update(rowsOfRanking(worst?.groups ?? []), { link });
        byId("worst-of-range-none").hidden = worst?.groups.length !== 0;
        if (history) this.#panels.update({ ...history, series: choose(history.series) }, range, before);
        else this.#panels.clear();
    }
}
