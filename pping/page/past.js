// Asks for a range of the history, for the same range a week before if these are compared, and for its worst groups.

import { rangeUrl, worstOfRangeUrl } from "./address.js";
import { Question } from "./feed.js";
import { WEEK } from "./range.js";

/** The shortest time between two attempts, ms. */
const PACE = 5000;

/** How long an answer may take: months of many groups are hundreds of files, ms. */
const TIME_OUT = 60_000;

/** A question whose answer stays the same: it is asked once. */
class Part {
    #question;
    #href = null;
    /** The answer, or null while there is none; what is wrong, or null. */
    answer = null;
    problem = null;

    constructor(onAnswer) {
        this.#question = new Question(PACE, (status, answer, text) => {
            // A server that is busy or gone is asked again.
            const isFinal = status >= 200 && status < 500;
            this.answer = answer ?? this.answer;
            this.problem = answer ? null : `pping ${status ? `answered ${status}: ` : ""}${text.trim()}`;
            if (!isFinal) this.#href = null;
            onAnswer();
        }, TIME_OUT);
    }

    /** Asks, unless it was answered. An answer to another question stays until then. */
    want(url) {
        if (url.href === this.#href) return;
        this.#href = url.href;
        this.#question.want(url);
    }

    /** Forgets the answer. */
    clear() {
        this.#question.stop();
        [this.#href, this.answer, this.problem] = [null, null, null];
    }
}

/** A range of the history. */
export class Past {
    #onChange;
    #parts = Object.fromEntries(["range", "before", "worst"].map((name) => [name, new Part(() => this.#take())]));
    #kind = null;
    #wanted = [];
    #range = null;

    /** `onChange({ range, history, before, worst, problems })` is called when there is something new; what is not there is null. */
    constructor(onChange) {
        this.#onChange = onChange;
    }

    /** Asks for a range of the interfaces, or of a group by its label. */
    want(state, range, label) {
        const earlier = { from: range.from - WEEK, to: range.to - WEEK };
        const urls = { range: rangeUrl(state, range, label) };
        if (range.isCompared) urls.before = rangeUrl(state, earlier, label);
        if (label === null) urls.worst = worstOfRangeUrl(state, range);
        // As a range that ends now moves on, the last answer stays. One to something else does not.
        const kind = JSON.stringify([range.name, label, state.interface, state.side, state.method]);
        if (kind !== this.#kind) this.stop();
        const wanted = Object.keys(urls);
        const isOther = wanted.join() !== this.#wanted.join();
        [this.#kind, this.#range, this.#wanted] = [kind, range, wanted];
        for (const [name, part] of Object.entries(this.#parts)) {
            if (name in urls) part.want(urls[name]);
            else part.clear();
        }
        if (isOther) this.#take();
    }

    #take() {
        const { range, before, worst } = this.#parts;
        const problems = new Set([range, before, worst].map((part) => part.problem).filter((problem) => problem !== null));
        this.#onChange({
            range: this.#range, history: range.answer, before: before.answer, worst: worst.answer, problems: [...problems],
        });
    }

    /** Stops asking, and forgets. */
    stop() {
        Object.values(this.#parts).forEach((part) => part.clear());
        [this.#kind, this.#wanted] = [null, []];
    }
}
