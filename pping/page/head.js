// The head of the page: the interfaces with their rates, the health of pping, and whether it answers.

import { Keyed, el, mark, write } from "./dom.js";
import { amount, clock, sanitized, share, side, time } from "./format.js";
import { Health } from "./health.js";

/** The silence after which the page reports that pping does not answer, ms. */
const PATIENCE = 3000;

/** Makes a line of figures: its term, and a name or unit for each figure. */
function line(term, names) {
    const figures = names.map(() => el("b", { textContent: "-" }));
    const element = el("div", {}, el("dt", { textContent: term }));
    names.forEach(([before, after], index) => element.append(el("dd", {}, before, figures[index], after)));
    return { element, figures };
}

/** Describes how much of the RTT inflation beyond an interface is the queue of this host. */
function ownQueue(residence) {
    const { beyond, queue } = residence ?? {};
    if (beyond && beyond.share !== null) {
        const [own, all] = [time(Math.min(beyond.queue, beyond.inflation)), time(beyond.inflation)];
        return `Own queue: ${own} of the ${all} inflation beyond (${share(beyond.share)}).`;
    }
    return queue ? `Own queue: p50 ${time(queue.p50)}, p95 ${time(queue.p95)}.` : "";
}

/** Makes the card of an interface: a line for each direction of its packets, and one for each side with RTTs. */
function card(name) {
    const state = el("span", { className: "state" });
    const title = el("h2", {}, el("bdi", { textContent: sanitized(name) }));
    const rates = ["in", "out"].map((term) => line(term, [["", " packets/s"], ["", "bit/s"]]));
    const sides = el("dl", { className: "sides" });
    const lines = new Keyed(sides, (term) => line(term, [["p50 ", ""], ["p95 ", ""], ["", ""]]));
    const own = el("p", { className: "muted" });
    const element = el(
        "article",
        { className: "card" },
        el("header", {}, title, state),
        el("dl", { className: "rates" }, ...rates.map((it) => it.element)),
        sides,
        own,
    );
    const update = (answer, series) => {
        mark(element, "data-state", answer.is_up ? "up" : "gone");
        write(state, answer.is_up ? `${amount(answer.samples)} samples/s` : "is gone");
        [answer.ingress, answer.egress].forEach(({ packets, bits }, index) => {
            write(rates[index].figures[0], amount(packets));
            write(rates[index].figures[1], `${amount(bits)} `);
        });
        lines.update(series.map(side)).forEach(({ figures }, index) => {
            write(figures[0], time(series[index].rtt.p50));
            write(figures[1], time(series[index].rtt.p95));
            write(figures[2], sanitized(series[index].method));
        });
        const words = ownQueue(answer.residence);
        write(own, words);
        own.hidden = words === "";
    };
    return { element, update };
}

/** The head of the page. */
export class Head {
    #cards = new Keyed(document.getElementById("interfaces"), card);
    #health = new Health();
    #state = document.getElementById("state");
    #trouble = document.getElementById("trouble");
    #troubleText = document.getElementById("trouble-text");
    #since = document.getElementById("since");
    #version = null;

    /** Shows a summary, with the RTTs of some of its series. */
    update(summary, representativeSeries) {
        this.#cards.update(summary.interfaces.map((it) => it.interface)).forEach((card, index) => {
            const it = summary.interfaces[index];
            card.update(it, representativeSeries.filter((series) => series.interface === it.interface && series.rtt));
        });
        this.#health.update(summary);
        document.getElementById("version").textContent = summary.version;
        this.#version ??= summary.version;
        document.getElementById("upgraded").hidden = this.#version === summary.version;
    }

    /** Shows whether pping answers, and whether the screen moves. */
    showState({ heard, reason }, isFrozen) {
        const silence = Date.now() - heard;
        const isLost = silence > PATIENCE;
        const state = isLost ? "lost" : isFrozen ? "frozen" : "live";
        mark(document.documentElement, "data-state", state);
        write(this.#state, { lost: "no answer", frozen: "frozen", live: "live" }[state]);
        this.#trouble.hidden = !isLost;
        if (!isLost) return;
        // The text that is read aloud changes once. The seconds beside it are only visible.
        const why = reason ? `: ${reason}` : "";
        write(
            this.#troubleText,
            `No answer from pping${why}. Figures are of ${clock(heard / 1000)}; this page goes on when it is back.`,
        );
        write(this.#since, `no answer for ${Math.floor(silence / 1000)} s`);
    }
}
