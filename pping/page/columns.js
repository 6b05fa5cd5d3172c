// The columns of the tables of groups, and their rows.

import { amount, count, sanitized, seriesKey, share, side, time } from "./format.js";

const rtt = (name, more) => ({
    name, title: name, sort: name === "mean" || name === "max" ? null : name,
    value: (row) => row.series?.rtt?.[name] ?? null, text: time, ...more,
});
const words = (name, title, value) => ({ name, title, isText: true, value, text: sanitized });
/** A percentile of a side. Its title is where it was measured. */
const ofSide = (of, name) => ({
    name: `${of}_${name}`, title: `${of} ${name}`, sort: `${of}_${name}`, text: time,
    value: (row) => row.sides?.[of]?.rtt?.[name] ?? null,
    hint: (row) => measuredBy(row.sides?.[of]),
});
const trend = (of) => ({ name: `${of}_trend`, title: `${of} p95, 15 min`, side: of });

/** Every column: the sort order if it has one, the value, and the value as text. */
const COLUMNS = [
    { name: "group", title: "group", sort: "group", isText: true },
    // What nodes of the tree of groups have beside.
    { name: "members", title: "members", sort: "members", value: (row) => row.group.members ?? null, text: count },
    { name: "active", title: "active", sort: "active", value: (row) => row.group.active ?? null, text: count, hint: activeOf },
    { name: "bad", title: "bad", sort: "bad", value: (row) => row.group.bad ?? null, text: count, hint: badOf },
    { name: "past", title: "past", isText: true },
    words("interface", "interface", (row) => row.series.interface ?? "-"),
    words("method", "method", (row) => row.series.method),
    words("side", "side", (row) => side(row.series)),
    { name: "count", title: "samples", sort: "count", value: (row) => row.series.rtt?.count ?? 0, text: count },
    rtt("min"), rtt("mean"), rtt("p50"), rtt("p90"), rtt("p95"), rtt("p99"), rtt("max"),
    { name: "range", title: "p50 to p99" },
    ofSide("inside", "p50"), ofSide("inside", "p95"), trend("inside"),
    ofSide("outside", "p50"), ofSide("outside", "p95"), trend("outside"),
    { name: "packets", title: "packets", sort: "packets", value: (row) => row.traffic.packets, text: count },
    { name: "bytes", title: "bytes", sort: "bytes", value: (row) => row.traffic.bytes, text: amount },
    { name: "sent", title: "sent, bytes", value: (row) => row.series.sent.bytes, text: amount },
    { name: "received", title: "received, bytes", value: (row) => row.series.received.bytes, text: amount },
    {
        name: "retx", title: "retx", sort: "retransmissions", text: share,
        value: ({ traffic }) => (traffic.packets > 0 ? traffic.retransmissions / traffic.packets : null),
    },
    // The score by the first profile: the others are in the title.
    {
        name: "quality", title: "quality", sort: "quality", text: count,
        value: (row) => Object.values(row.quality)[0] ?? null, hint: (row) => scores(row.quality),
    },
];

/** The columns of the worst groups of a range. */
export const RANKED = ["group", "interface", "method", "side", "count", "p50", "p95", "p99", "range", "packets", "retx"];

/** The columns of the table of all groups, of that with both sides of each in a row, of the series below, and of one group. */
export const ALL = ["group", "interface", "method", "side", "count", "min", "p50", "p95", "p99", "range", "packets", "retx", "quality"];
export const SIDES = [
    "group", "inside_p50", "inside_p95", "inside_trend", "outside_p50", "outside_p95", "outside_trend", "packets", "bytes", "retx",
    "quality",
];
export const BELOW = ALL.slice(1);

/** The columns of nodes of the tree of groups, and of those with both sides. */
export const NODES = ["group", "members", "active", "bad", "past", ...ALL.slice(1)];
export const NODES_OF_SIDES = ["group", "members", "active", "bad", "past", ...SIDES.slice(1)];
export const ONE = [
    "interface", "method", "side", "count", "min", "mean", "p50", "p90", "p95", "p99", "max", "range", "packets", "sent",
    "received", "retx", "quality",
];

/** Returns columns by their names. */
export function columns(names) {
    return names.map((name) => COLUMNS.find((column) => column.name === name));
}

/** Returns where and by which methods a side was measured, in words. */
function measuredBy(side) {
    return side ? `${sanitized(side.interface ?? "-")}: ${side.methods.map(sanitized).join(", ") || "no round-trip times"}` : null;
}

/** Returns how many members of a node are active, in words. */
function activeOf({ group }) {
    return "members" in group ? `${group.active} of ${group.members} groups were measured in the last 15 minutes` : null;
}

/** Returns how many members of a node are bad, in words. */
function badOf({ group }) {
    return "members" in group ? `${group.bad} of ${group.active} active groups score less than 50` : null;
}

/** Returns the score by each profile, in words. */
function scores(quality) {
    return Object.entries(quality).map(([profile, score]) => `${sanitized(profile)} ${score ?? "unknown"}`).join(", ");
}

const samples = (series) => series.rtt?.count ?? 0;

function row(group, series) {
    const sum = (name) => series.sent[name] + series.received[name];
    const traffic = { packets: sum("packets"), bytes: sum("bytes"), retransmissions: sum("retransmissions") };
    return { group, series, traffic, quality: series.quality, below: 0, key: `${group.id} ${seriesKey(series)}` };
}

/** Returns a row for each group of a ranking, with the series that ranks it. */
export function rowsOfRanking(groups) {
    return groups.map((group) => row(group, group.series));
}

/** Returns a row for each series of a group that has samples, in the order of the answer. */
export function rowsOfSeries(group) {
    return group.series.filter((series) => samples(series) > 0).map((series) => row(group, series));
}

/**
 * Returns the rows of groups: one for each, and those of its series below it if its id is in `unfolded`. The row of a group has
 * both sides if these are told apart, or else its busiest series.
 */
export function rowsOf(groups, unfolded) {
    return groups.flatMap((group) => {
        const rows = rowsOfSeries(group);
        if (rows.length === 0) return [];
        const isUnfolded = unfolded.has(group.id);
        const { sides } = group;
        if (sides) {
            const { traffic, quality } = sides;
            const first = { group, series: null, sides, traffic, quality, below: rows.length, isUnfolded, key: group.id };
            return isUnfolded ? [first, { group, series: null, rows, key: `${group.id} below` }] : [first];
        }
        const busiest = rows.reduce((most, row) => (samples(row.series) > samples(most.series) ? row : most));
        const others = rows.filter((row) => row !== busiest);
        const first = { ...busiest, below: others.length, isUnfolded, key: group.id };
        return isUnfolded ? [first, ...others.map((row) => ({ ...row, isBelow: true }))] : [first];
    });
}
