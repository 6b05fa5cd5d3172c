// The page of a running pping. It uses only what /api/v1 offers.

import * as address from "./address.js";
import { ALL, NODES, NODES_OF_SIDES, ONE, SIDES, rowsOf, rowsOfSeries } from "./columns.js";
import { Controls } from "./controls.js";
import { el, mark, write } from "./dom.js";
import { Feed, Question } from "./feed.js";
import { count, cut, sanitized, seriesKey, side, time } from "./format.js";
import { Head } from "./head.js";
import { Panels } from "./panels.js";
import { Past } from "./past.js";
import { rangeOf } from "./range.js";
import { RangeView } from "./rangeview.js";
import { Table } from "./table.js";
import { Tree } from "./tree.js";
import { Worst } from "./worst.js";

/** The shortest time between two questions for groups, and for the last 15 minutes, ms. Summaries come once a second. */
const PACE = 1000;
const PACE_OF_PAST = 5000;

/** How many prefixes of a group are shown. */
const PREFIXES = 100;

/** How long after the last key the filter takes effect, ms. */
const TYPING = 200;

const byId = (id) => document.getElementById(id);
const CHOICES = ["interface", "side", "method"];

let state = address.parse(location.hash);
let summary = null;
let isFrozen = false;
/** The list that a group's page leads back to, in the present range. */
let listState = { ...state, group: null };
const list = () => address.format(address.withRange(listState, state));
/** The range that is shown; null for the last 15 minutes. */
let range = null;
/** The label of the group that is shown, as soon as it is known. */
let label = null;
/** Whether it is a node of the tree of groups, of which no more than the last 15 minutes is kept. */
let isNode = false;
/** The latest summary, shown or not. */
let latest = null;
/** The groups that are shown, and the ids of those whose other rows are. */
let shown = [];
const unfolded = new Set();

const head = new Head();
const groups = new Table(byId("groups"), ALL, { onSort: (sort, order) => change({ sort, order }), onFold: fold });
const series = new Table(byId("series"), ONE);
const worst = new Worst(() => summary && !isFrozen && ask());
const panels = new Panels(byId("panels"), byId("panels-note"));
const rangeView = new RangeView(panels);
const controls = new Controls((some) => change(some, "push"));
const tree = new Tree((some) => change({ ...some, sort: "", order: "desc" }, "push"));

const ofGroups = new Question(PACE, (status, answer, text) => {
    if (answer) showGroups(answer);
    // There is no such node.
    else if (status === 404) showGroups({ groups: [], known: 0, found: 0, note: text.trim() });
});
const ofGroup = new Question(PACE, (status, answer) => status && showGroup(status, answer));
const ofPast = new Question(PACE_OF_PAST, (status, answer) => answer && showPast(answer));
const ofWorst = new Question(PACE, (status, answer) => answer && worst.update(answer, address.linkIn(state)));
const past = new Past(showRange);
const feed = new Feed((answer) => {
    latest = answer;
    if (!isFrozen) show(answer);
});

/**
 * Returns one series for each interface and side: that of the chosen method, or else the one with the most samples,
 * since percentiles of several methods cannot be combined.
 */
function representativeSeries(all = summary.interfaces.flatMap((it) => it.series)) {
    const found = new Map();
    for (const series of all) {
        if (state.method && series.method !== state.method) continue;
        const place = JSON.stringify([series.interface, side(series)]);
        const samples = (of) => of?.rtt?.count ?? -1;
        if (!found.has(place) || samples(series) > samples(found.get(place))) found.set(place, series);
    }
    return [...found.values()];
}

/** Shows a summary, and asks for what goes with it. */
function show(answer) {
    summary = answer;
    head.update(summary, representativeSeries());
    write(byId("known"), count(summary.groups));
    tree.setLevels(summary.levels, summary.networks);
    tree.update(state);
    offer("interface", summary.interfaces.map((it) => it.interface));
    const series = summary.interfaces.flatMap((it) => it.series);
    offer("method", [...new Set(series.map((it) => it.method))]);
    offer("side", [...new Set(series.map(side))].filter((it) => it in address.SIDES).sort());
    ask();
}

/** Returns how groups are asked for: with both sides in one row, if pping tells sides apart. */
function view() {
    return summary.sides ? "sides" : "series";
}

function ask() {
    const of = rangeOf(state, summary);
    if ((of.range === null) !== (range === null)) panels.clear();
    range = of.range;
    controls.update(state, of, summary);
    rangeView.announce(range);
    askPast();
    if (state.group) {
        ofGroup.want(address.groupUrl(state));
        return;
    }
    ofGroups.want(address.groupsUrl({ ...state, ...tree.chosen(state) }, view()));
    const worstUrl = worst.url();
    if (worstUrl) ofWorst.want(worstUrl);
    else ofWorst.stop();
    const methods = new Set(representativeSeries().map((it) => it.method));
    if (range) ofPast.stop();
    else ofPast.want(address.historyUrl(state, methods.size === 1 ? [...methods][0] : state.method));
}

/** Asks for the range, if there is one: that of a group by its label, as soon as this is known. */
function askPast() {
    if (range && !(state.group && isNode) && (!state.group || label !== null)) past.want(state, range, state.group ? label : null);
    else past.stop();
}

/** Shows what there is of a range: of a group all series, as of its last 15 minutes. */
function showRange(found) {
    rangeView.update(found, state.group ? (series) => series : representativeSeries, address.linkIn(state));
}

function showPast(answer) {
    if (range) return;
    const wanted = new Set(representativeSeries().map(seriesKey));
    panels.update({ ...answer, series: answer.series.filter((it) => wanted.has(seriesKey(it))) });
}

/** Shows the rows of groups, and returns them. */
function arrangeGroups() {
    const rows = rowsOf(shown, unfolded);
    const hasSides = shown.some((group) => group.sides);
    const hasNodes = shown.some((group) => "members" in group);
    if (shown.length > 0) groups.arrange(hasNodes ? (hasSides ? NODES_OF_SIDES : NODES) : hasSides ? SIDES : ALL);
    const pageOf = address.linkIn(state);
    const link = (group) => ("members" in group ? address.format(tree.inside(state, group.path)) : pageOf(group));
    const sort = address.sortOf({ ...state, ...tree.chosen(state) }, hasSides ? "sides" : "series");
    groups.update(rows, { ...state, link, pageOf, sort });
    return rows;
}

/** Shows or hides the other rows of a group. */
function fold(id) {
    if (!unfolded.delete(id)) unfolded.add(id);
    arrangeGroups();
}

function showGroups(answer) {
    shown = answer.groups;
    const rows = arrangeGroups();
    const found = answer.found === answer.known ? "" : `${count(answer.found)} of `;
    const part = answer.groups.length < answer.found ? `${count(answer.groups.length)} of ` : "";
    const isPart = tree.chosen(state).under !== "";
    const all = isPart ? count(answer.found) : `${found}${count(answer.known)}`;
    write(byId("found"), `${part}${all} ${tree.words(state)} in the last minute`);
    byId("none").hidden = rows.length > 0;
    const isQuiet = answer.groups.length > 0;
    const none = answer.known === 0 ? "No group has been seen in the last 15 minutes."
        : isQuiet ? "No round-trip times in the last minute." : "No group is like this.";
    write(byId("none"), answer.note ? `${answer.note}.` : none);
    byId("more").hidden = answer.groups.length >= Math.min(answer.found, address.MAX_LIMIT);
    if (answer.sequence !== undefined) document.body.dataset.sequence = answer.sequence;
}

function showGroup(status, answer) {
    const isGone = answer === null;
    byId("gone").hidden = !isGone;
    byId("group").hidden = isGone && !(range && label);
    for (const id of ["facts", "last-minute"]) byId(id).hidden = isGone;
    if (isGone) {
        if (!range) panels.clear();
        write(byId("gone"), status === 404
            ? "There is no such group, or it has sent nothing for 15 minutes. It appears here when it does."
            : `pping answered ${status}.`);
        return;
    }
    isNode = Boolean(answer.level);
    showLabel(answer.group);
    const queues = answer.queues.map(({ interface: name, p50, p95 }) =>
        [`own queue at ${name ?? "-"}`, `p50 ${time(p50)}, p95 ${time(p95)}`]);
    const members = "members" in answer ? [["groups", `${count(answer.members)}, of which ${count(answer.active)} active and ${count(answer.bad)} bad`]] : [];
    const facts = [prefixes(answer), ["DSCP", answer.dscp], ...Object.entries(answer.labels), ...members, ...queues];
    const known = facts.filter(([, value]) => value !== null);
    const texts = known.flatMap(([name, value]) => [sanitized(name), sanitized(value)]);
    if (byId("facts").dataset.texts !== JSON.stringify(texts)) {
        byId("facts").dataset.texts = JSON.stringify(texts);
        byId("facts").replaceChildren(...known.map(([name, value]) =>
            el("div", {}, el("dt", {}, el("bdi", { textContent: sanitized(name) })), el("dd", {}, el("bdi", { textContent: sanitized(value) })))));
    }
    const narrow = (of) => of.filter((it) =>
        (!state.interface || it.interface === state.interface) &&
        (!state.method || it.method === state.method) &&
        (!state.side || side(it) === state.side));
    series.update(rowsOfSeries({ ...answer, series: narrow(answer.series) }));
    if (range && !isNode) askPast();
    else panels.update({ ...answer.history, series: narrow(answer.history.series) });
    document.body.dataset.sequence = answer.history.sequence;
}

/** Shows the label of the group. In a range, the group is asked for by it. */
function showLabel(text) {
    label = text;
    const shown = sanitized(text);
    write(byId("label"), shown);
    document.title = `${cut(shown, 60)} - pping`;
}

/** Returns the prefixes of a group as a fact, as many as a reader may want. */
function prefixes({ prefix, prefixes: all, prefix_count: number }) {
    if (number < 2) return ["prefix", prefix];
    const shown = all.slice(0, PREFIXES);
    const more = number > shown.length ? ` and ${count(number - shown.length)} more` : "";
    return [`${count(number)} prefixes`, shown.join(", ") + more];
}

/** Sets the options of a choice to some values, and to the present one in any case. */
function offer(name, values) {
    const choice = byId(name);
    const all = [...values, ...(state[name] && !values.includes(state[name]) ? [state[name]] : [])];
    const present = [...choice.options].slice(1).map((option) => option.value);
    if (all.join("\0") !== present.join("\0")) {
        const options = all.map((value) => el("option", { value, textContent: cut(sanitized(value), 40) }));
        choice.replaceChildren(choice.options[0], ...options);
    }
    choice.value = state[name];
}

/** Changes what is shown, and the address with it. With `push`, the back button returns to what was before. */
function change(some, how = "replace") {
    state = { ...state, ...some };
    if (state.group && label !== null) state.label = label;
    history[`${how}State`](null, "", address.format(state));
    arrange();
}

/** Shows what the address says. */
function arrange() {
    const isGroup = state.group !== null;
    if (!isGroup) listState = state;
    document.body.dataset.view = isGroup ? "group" : "groups";
    byId("of-groups").hidden = isGroup;
    byId("of-group").hidden = !isGroup;
    for (const each of document.querySelectorAll(".only-groups")) each.hidden = isGroup;
    for (const each of document.querySelectorAll(".only-group")) each.hidden = !isGroup;
    mark(byId("back"), "href", list());
    if (isGroup) {
        ofGroups.stop();
        ofPast.stop();
        ofWorst.stop();
    } else {
        ofGroup.stop();
        document.title = `pping ${location.host}`;
    }
    if (document.activeElement !== byId("filter")) byId("filter").value = state.filter;
    for (const name of CHOICES) {
        if (![...byId(name).options].some((option) => option.value === state[name])) offer(name, [state[name]]);
        byId(name).value = state[name];
    }
    tree.update(state);
    byId("clear").hidden = !["filter", ...CHOICES].some((name) => state[name]);
    if (summary) ask();
}

function freeze() {
    isFrozen = !isFrozen;
    // A frozen page changes only when its user asks for something.
    if (isFrozen) [ofGroups, ofGroup, ofPast, ofWorst, past].forEach((question) => question.stop());
    else if (latest) show(latest);
    mark(byId("freeze"), "aria-pressed", isFrozen);
    head.showState(feed, isFrozen);
}

function listen() {
    let typing = null;
    byId("filter").addEventListener("input", () => {
        clearTimeout(typing);
        typing = setTimeout(() => change({ filter: byId("filter").value }), TYPING);
    });
    for (const name of CHOICES) byId(name).addEventListener("change", () => change({ [name]: byId(name).value }));
    const clear = () => {
        clearTimeout(typing);
        byId("filter").value = "";
        change({ filter: "", interface: "", side: "", method: "" });
    };
    byId("clear").addEventListener("click", () => {
        clear();
        byId("filter").focus();
    });
    byId("more").addEventListener("click", () => change({ limit: Math.min(state.limit + 100, address.MAX_LIMIT) }));
    byId("freeze").addEventListener("click", freeze);
    byId("controls").addEventListener("submit", (event) => {
        event.preventDefault();
        controls.submit();
    });
    addEventListener("hashchange", () => {
        const { group: before, under } = state;
        state = address.parse(location.hash);
        if (before !== state.group) {
            panels.clear();
            [label, isNode] = [null, false];
            if (state.label) showLabel(state.label);
            byId("group").hidden = true;
            byId("gone").hidden = true;
            scrollTo(0, 0);
            arrange();
            // The focus moves to the top of the other page, for users without a mouse.
            byId(state.group ? "back" : "filter").focus({ preventScroll: true });
        } else {
            arrange();
            // The link that was followed is no longer in the table.
            if (under !== state.under) tree.focus();
        }
    });
    addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
        if (event.key === "Escape") {
            if (state.group) location.hash = list();
            else if (byId("clear").hidden && state.under) location.hash = address.format(tree.outside(state));
            else clear();
        } else if (event.key === "/" && !event.target.matches("input, select")) {
            event.preventDefault();
            byId("filter").focus();
        }
    });
}

write(byId("host"), location.host);
byId("without").hidden = Boolean(globalThis.uPlot);
listen();
if (state.label) showLabel(state.label);
arrange();
feed.start();
setInterval(() => head.showState(feed, isFrozen), 500);
