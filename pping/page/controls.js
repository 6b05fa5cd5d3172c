// The controls of the range: one of some lengths, or a beginning and an end, and whether it is compared with the week before.

import { el, write } from "./dom.js";
import { RANGES, absolute } from "./range.js";

/** What stands for a beginning and an end among the ranges. */
const BETWEEN = "between";

/** The length of the range that a beginning and an end are proposed for, s. */
const PROPOSED = 24 * 3600;

const byId = (id) => document.getElementById(id);

/** Returns a moment as the inputs have it: in the zone of the viewer, without naming it. */
function local(seconds) {
    const date = new Date(1000 * seconds);
    return new Date(date - 60_000 * date.getTimezoneOffset()).toISOString().slice(0, 16);
}

/** The controls of the range. */
export class Controls {
    #choice = byId("range");
    #between = byId("between");
    #ends = ["from", "to"].map(byId);
    #compare = byId("compare");
    #problem = byId("range-problem");
    #onChange;
    #range = null;
    #now = 0;
    #shown = null;

    /** `onChange(some)` is called with what the user changed of the state. */
    constructor(onChange) {
        this.#onChange = onChange;
        const options = Object.entries(RANGES).map(([value, { name }]) => el("option", { value, textContent: `last ${name}` }));
        this.#choice.append(...options, el("option", { value: BETWEEN, textContent: "from … to …" }));
        this.#choice.addEventListener("change", () => this.#choose(this.#choice.value));
        this.#compare.addEventListener("change", () => onChange({ compare: this.#compare.checked ? "week" : "" }));
    }

    #choose(value) {
        if (value === BETWEEN) {
            // What is shown now, fixed: the link to it then shows the same tomorrow.
            const to = this.#range?.to ?? this.#now;
            this.#onChange({ range: "", from: absolute(this.#range?.from ?? to - PROPOSED), to: absolute(to) });
            this.#ends[0].focus();
        } else {
            this.#onChange({ range: value, from: "", to: "", ...(value ? {} : { compare: "" }) });
        }
    }

    /** Takes the moments of the inputs, after the user has confirmed them. */
    submit() {
        if (this.#between.hidden) return;
        const [from, to] = this.#ends.map(({ value }) => new Date(value));
        if (Number.isNaN(from - to)) this.say("Give a beginning and an end.");
        else if (from >= to) this.say("The range ends before it begins.");
        else this.#onChange({ range: "", ...{ from: absolute(from / 1000), to: absolute(to / 1000) } });
    }

    /** Shows what is wrong, or nothing for null. */
    say(problem) {
        write(this.#problem, problem ?? "");
        this.#problem.hidden = problem === null;
    }

    /** Shows the state, whose range this is, in the controls. */
    update(state, { range, problem }, { history, time }) {
        this.#range = range;
        this.#now = Math.floor(time / 60e9) * 60;
        for (const each of document.querySelectorAll(".only-history")) each.hidden = !history;
        for (const each of document.querySelectorAll(".only-range")) each.hidden = !range;
        const shown = JSON.stringify([state.range, state.from, state.to, state.compare, problem]);
        // What the user is typing stays until the state changes.
        if (shown === this.#shown) return;
        this.#shown = shown;
        const isBetween = Boolean(range && state.from);
        this.#choice.value = isBetween ? BETWEEN : range ? state.range : "";
        this.#between.hidden = !isBetween;
        this.#between.disabled = !isBetween;
        if (isBetween) {
            this.#ends[0].value = local(Date.parse(state.from) / 1000);
            this.#ends[1].value = local(Date.parse(state.to) / 1000);
        }
        this.#compare.checked = Boolean(range?.isCompared);
        this.say(problem);
    }
}
