// What the table has: groups, networks at the other end, or the tree of groups: the levels, and the way from the outermost one to the node whose children are shown.

import { format } from "./address.js";
import { Keyed, el, mark, write } from "./dom.js";
import { cut, sanitized } from "./format.js";

/** What the networks at the other end are by, as the levels of the tree are. */
const NETWORK = "network";

/** The longest name of a node on the way, characters. */
const NAME = 60;

const byId = (id) => document.getElementById(id);

/** Returns the paths of the nodes on the way to a node, the outermost first, with the value of each. */
function nodesOf(path) {
    const nodes = [];
    // A `/` in a value has a `\` before it.
    for (const { 0: part, index } of path.matchAll(/(?:\\.|[^\\/])+/gsu)) {
        nodes.push({ path: path.slice(0, index + part.length), value: part.replace(/\\(.)/gsu, "$1") });
    }
    return nodes;
}

/** The choice of a level, and the way to the node that is open. */
export class Tree {
    #choice = byId("level");
    #way = byId("way");
    #links;
    #levels = [];
    #hasNetworks = false;

    /** `onChange(some)` is called with what the user changed of the state. */
    constructor(onChange) {
        this.#choice.addEventListener("change", () => onChange({ by: this.#choice.value, under: "" }));
        this.#links = new Keyed(this.#way.querySelector("ol"), () => {
            const link = el("a", {}, el("bdi"));
            return { element: el("li", {}, link), link };
        });
    }

    /** Takes the levels of pping: none without `--roll-up`; and whether it tells networks at the other end apart. */
    setLevels(levels = [], hasNetworks = false) {
        if (levels.join("\0") === this.#levels.join("\0") && hasNetworks === this.#hasNetworks) return;
        [this.#levels, this.#hasNetworks] = [levels, hasNetworks];
        const options = (hasNetworks ? [...levels, NETWORK] : levels).map((value) => el("option", { value, textContent: cut(sanitized(value), 40) }));
        this.#choice.replaceChildren(this.#choice.options[0], ...options);
    }

    /** Returns the part of a state that this pping has: a reload may have removed its level. */
    chosen({ by, under }) {
        if (by === NETWORK && this.#hasNetworks) return { by, under: "" };
        if (this.#levels.length === 0) return { by: "", under: "" };
        return { by: this.#levels.includes(by) ? by : "", under };
    }

    /** Returns the state that shows the children of a node: nodes of the next level, or groups. */
    inside(state, path) {
        return { ...state, under: path, by: this.#levels[nodesOf(path).length] ?? "", sort: "", order: "desc" };
    }

    /** Returns the state that shows what is around the children of a node. */
    outside(state) {
        const above = nodesOf(state.under).at(-2);
        return above ? this.inside(state, above.path) : { ...state, by: this.#levels[0] ?? "", under: "", sort: "", order: "desc" };
    }

    /** Shows where a state is in the tree. */
    update(state) {
        const { by, under } = this.chosen(state);
        this.#choice.parentElement.hidden = (this.#levels.length === 0 && !this.#hasNetworks) || state.group !== null;
        this.#choice.value = by;
        this.#way.hidden = under === "" || state.group !== null;
        if (this.#way.hidden) return;
        const all = { value: `all ${this.#levels[0]}`, state: { ...state, by: this.#levels[0], under: "", sort: "", order: "desc" } };
        const steps = [all, ...nodesOf(under).map(({ path, value }) => ({ value, state: this.inside(state, path) }))];
        this.#links.update(steps.map((_, index) => index)).forEach(({ link }, index) => {
            const { value, state: to } = steps[index];
            write(link.firstChild, cut(sanitized(value), NAME));
            mark(link, "href", format(to));
            mark(link, "aria-current", index === steps.length - 1 ? "page" : null);
        });
    }

    /** Moves the focus to where the table is in the tree. */
    focus() {
        const place = this.#way.hidden ? this.#choice : this.#way.querySelector("[aria-current]");
        place.focus({ preventScroll: true });
    }

    /** Describes what a table of the state has: groups, or nodes of a level. */
    words(state) {
        const { by, under } = this.chosen(state);
        return (by === "" ? "groups" : sanitized(by)) + (under === "" ? "" : ` under ${sanitized(under)}`);
    }
}
