// A small line that shows how a round-trip time changed.

import { mark } from "./dom.js";
import { time } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

/** The height of the line in its own units; each value is one unit wide. */
const HEIGHT = 20;

/** Returns the path of some values, from 0 to the highest; null is a gap. */
export function path(values) {
    const highest = Math.max(1, ...values);
    const at = (value, index) => `${index} ${(HEIGHT - 1 - ((HEIGHT - 2) * value) / highest).toFixed(1)}`;
    return values.map((value, index) => {
        if (value === null) return "";
        if ((values[index - 1] ?? null) !== null) return `L${at(value, index)}`;
        // A value between two gaps is a dash.
        return `M${at(value, index)}${(values[index + 1] ?? null) === null ? "h1" : ""}`;
    }).join("");
}

/** A line in a cell of a table. */
export class Sparkline {
    element = document.createElementNS(SVG, "svg");
    #path = document.createElementNS(SVG, "path");

    constructor() {
        for (const [name, value] of [["class", "sparkline"], ["role", "img"], ["preserveAspectRatio", "none"]]) {
            this.element.setAttribute(name, value);
        }
        this.#path.setAttribute("vector-effect", "non-scaling-stroke");
        this.element.append(this.#path);
    }

    /** Shows values, ns, where null is none. */
    update(values, title) {
        mark(this.element, "viewBox", `0 0 ${Math.max(1, values.length)} ${HEIGHT}`);
        mark(this.#path, "d", path(values));
        const known = values.filter((value) => value !== null);
        const words = known.length > 0 ? `up to ${time(Math.max(...known))}, last ${time(known.at(-1))}` : "none";
        mark(this.element, "aria-label", `${title}: ${words}`);
    }
}
