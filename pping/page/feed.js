// Receives data from pping: summaries by server-sent events, or by asking once a second, and answers to questions.

import { relativeUrl } from "./address.js";

/** How often to ask while there are no events, ms. */
const PACE = 1000;

/** When to try events again after they were refused, ms. */
const REFUSED = 30_000;

/** Events come once a second: after this time without one, the connection is dead, ms. */
const SILENCE = 10_000;

/** How long an answer may take, ms. */
const TIME_OUT = 10_000;

/** Summaries, one for each change, while the page is visible. */
export class Feed {
    #onSummary;
    #source = null;
    #timer = null;
    #tag = null;
    #nextStream = 0;
    /** When pping was last heard, and why it is silent. */
    heard = Date.now();
    reason = null;

    constructor(onSummary) {
        this.#onSummary = onSummary;
        document.addEventListener("visibilitychange", () => this.#wake());
        addEventListener("pagehide", () => this.#stop());
        addEventListener("pageshow", () => this.#wake());
        setInterval(() => this.#watch(), PACE);
    }

    #wake() {
        if (document.visibilityState === "hidden") {
            this.#stop();
        } else if (!this.#source && !this.#timer) {
            this.heard = Date.now();
            this.#next(0);
        }
    }

    /** Starts the feed. */
    start() {
        this.#wake();
    }

    #stop() {
        this.#source?.close();
        this.#source = null;
        clearTimeout(this.#timer);
        this.#timer = null;
    }

    #next(delay) {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => (Date.now() >= this.#nextStream ? this.#stream() : this.#ask()), delay);
    }

    #stream() {
        this.#timer = null;
        const source = new EventSource(relativeUrl("api/v1/events"));
        this.#source = source;
        let events = 0;
        source.addEventListener("summary", (event) => {
            events += 1;
            this.#take(JSON.parse(event.data));
        });
        source.addEventListener("error", () => {
            // Reconnecting is decided here: the browser would wait longer, and not say why.
            if (this.#source !== source) return;
            this.#stop();
            this.#nextStream = Date.now() + (events > 0 ? PACE : REFUSED);
            this.#next(0);
        });
    }

    async #ask() {
        const timer = this.#timer;
        const wasAway = this.reason !== null;
        try {
            const headers = this.#tag ? { "If-None-Match": this.#tag } : {};
            const response = await fetch(relativeUrl("api/v1/summary"), { headers, signal: AbortSignal.timeout(TIME_OUT) });
            if (response.status === 304) {
                this.#hear();
            } else if (response.ok) {
                this.#tag = response.headers.get("ETag");
                this.#take(await response.json());
            } else {
                this.#fail(`it answered ${response.status}`);
            }
        } catch {
            this.#fail("it cannot be reached");
        }
        // A pping that answers again has events too.
        if (wasAway && this.reason === null) this.#nextStream = 0;
        // The next question is due, unless the feed was stopped meanwhile.
        if (this.#timer === timer) this.#next(PACE);
    }

    #fail(reason) {
        this.reason = reason;
        this.#tag = null;
    }

    #hear() {
        this.heard = Date.now();
        this.reason = null;
    }

    #take(summary) {
        this.#hear();
        this.#onSummary(summary);
    }

    #watch() {
        if (this.#source && Date.now() - this.heard > SILENCE) {
            this.#stop();
            this.#next(0);
        }
    }
}

/**
 * A question that is asked again whenever there is something new: never twice at once, not more often than its pace,
 * and for at most a tenth of the time, so that an open page costs a slow server little.
 */
export class Question {
    #pace;
    #take;
    #url = null;
    #asked = null;
    #timer = null;
    #after = 0;
    #again = false;
    #timeOut;

    /** `take(status, answer, text)` gets each answer: its text if it is an error. The status is 0 if there is none. */
    constructor(pace, take, timeOut = TIME_OUT) {
        this.#pace = pace;
        this.#take = take;
        this.#timeOut = timeOut;
    }

    /** Announces that a URL may have something new. A URL other than the last one is asked at once. */
    want(url) {
        const isOther = this.#url?.href !== url.href;
        this.#url = url;
        if (isOther) {
            this.#asked?.abort();
            this.#asked = null;
            this.#after = 0;
            clearTimeout(this.#timer);
            this.#timer = null;
        }
        this.#again = this.#asked !== null;
        if (!this.#asked && !this.#timer) this.#schedule();
    }

    #schedule() {
        this.#timer = setTimeout(() => this.#ask(), Math.max(0, this.#after - performance.now()));
    }

    /** Stops asking. */
    stop() {
        this.#asked?.abort();
        clearTimeout(this.#timer);
        [this.#url, this.#asked, this.#timer] = [null, null, null];
    }

    async #ask() {
        const asked = new AbortController();
        const begin = performance.now();
        [this.#asked, this.#timer, this.#again] = [asked, null, false];
        let answer = [0, null, "it cannot be reached, or takes too long"];
        try {
            const signal = AbortSignal.any([asked.signal, AbortSignal.timeout(this.#timeOut)]);
            const response = await fetch(this.#url, { signal });
            answer = response.ok ? [response.status, await response.json()] : [response.status, null, await response.text()];
        } catch {
            // The feed reports that nothing answers.
        }
        if (this.#asked !== asked) return;
        this.#asked = null;
        const took = performance.now() - begin;
        this.#after = Math.max(begin + this.#pace, performance.now() + 9 * took);
        if (this.#again) this.#schedule();
        this.#take(...answer);
    }
}
