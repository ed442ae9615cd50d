// SPDX-License-Identifier: MIT
//
// What: keeps the page up to date from /status.json, once a second, and sends what the buttons say.
// Place: status-page.c puts it at the end of status.html, whose rows it writes again.
// Shape: poll() -> show(now, before): figures and tables from one reply, rates from two.
"use strict";

const SECONDS = 120;
const ROWS = 24; // of the heat strip: four a power of ten, 10 us to 10 s
const samples = []; // {from, to, rate, counts: [ROWS], all}, by the server's clock
let before = null;

const by = id => document.getElementById(id);

function put(id, text) {
    if (by(id).textContent !== text)
        by(id).textContent = text;
}

const us = value => value < 1e3 ? `${value} µs` : value < 1e6 ? `${(value / 1e3).toFixed(1)} ms`
    : `${(value / 1e6).toFixed(1)} s`;
const bytes = value => value < 1048576 ? `${(value / 1024).toFixed(0)} KiB`
    : `${(value / 1048576).toFixed(1)} MiB`;
const seconds = value => value < 60 ? `${value} s`
    : value < 3600 ? `${Math.floor(value / 60)} min ${value % 60} s`
    : `${Math.floor(value / 3600)} h ${Math.floor(value % 3600 / 60)} min`;
const sum = list => list.reduce((all, one) => all + one, 0);

// ---- Tables ----

function element(name, text, kind) {
    const made = document.createElement(name);
    made.textContent = text;
    if (kind)
        made.className = kind;
    return made;
}

function head(text) {
    const made = element("th", text);
    made.scope = "row";
    return made;
}

const text = value => element("td", value);
const number = value => element("td", value, "n");

function fill(id, rows, none) {
    if (rows.length === 0) {
        const cell = element("td", none, "none");
        cell.colSpan = by(id).parentNode.tHead.rows[0].cells.length;
        rows = [[cell]];
    }
    by(id).replaceChildren(...rows.map(cells => {
        const row = document.createElement("tr");
        row.append(...cells);
        return row;
    }));
}

function showStates(pools) {
    const pool = pools.find(one => one.name === "http-connections");
    for (const row of by("states").rows) {
        const state = pool && pool.states.find(one => one.name === row.dataset.state);
        row.cells[2].textContent = state ? state.number : 0;
        row.cells[3].textContent = state && state.number > 0 ? us(state.oldest_ms * 1000) : "";
    }
}

function showPools(pools) {
    fill("pools", pools.map(pool => {
        const cell = text("");
        const list = element("ul", "");
        for (const state of pool.states.filter(one => one.number > 0)) {
            const item = element("li", `${state.name} `);
            item.append(element("b", state.number), " ", element("small", us(state.oldest_ms * 1000)));
            list.append(item);
        }
        cell.append(list);
        return [head(pool.name), number(pool.elements), cell];
    }), "no worker has shown its pools yet");
}

const BOUNDS = [100, 250, 500, 1e3, 2.5e3, 5e3, 1e4, 2.5e4, 5e4, 7.5e4, 1e5, 2.5e5, 5e5, 7.5e5, 1e6, 2.5e6, 5e6,
    7.5e6, 1e7];

function showLatency(durations) {
    const counts = Array(BOUNDS.length + 1).fill(0);
    for (const [end, count] of durations) {
        const at = BOUNDS.findIndex(bound => end <= bound);
        counts[at < 0 ? BOUNDS.length : at] += count;
    }
    fill("latency", counts.map((count, i) => [count, i]).filter(([count]) => count > 0)
        .map(([count, i]) => [number(i < BOUNDS.length ? us(BOUNDS[i]) : "more"), number(count)]),
        "no request has ended yet");
}

function showTables(now) {
    showStates(now.pools);
    showPools(now.pools);
    showLatency(now.requests.durations);
    fill("workers", now.workers.map(one => [head(one.place), number(one.pid), text(one.state),
        number(seconds(one.uptime)), number(one.starts - 1), number(one.requests),
        number(us(one.cpu_ms * 1000)), number(bytes(one.lua_memory)), number(us(one.seen_ms * 1000))]),
        "no worker is there");
    fill("routes", now.routes.map(one => [head(one.route || "(no route)"), number(one.requests),
        number(one.errors), number(us(one.mean_us)), number(us(one.p99_us)), number(us(one.max_us))]),
        "no request has ended yet");
    fill("log", now.log.map(line => [text(new Date(line.time * 1000).toISOString().slice(0, 19).replace("T", " ")),
        element("td", line.level_name, line.level_name), text(line.text)]), "no warning, no error");
}

// ---- Figures, and what changed between two replies ----

function rowOf(end) {
    return Math.max(0, Math.min(ROWS - 1, Math.floor((Math.log10(end) - 1) * 4)));
}

function sampleOf(now) {
    const old = new Map(before.requests.durations);
    const counts = Array(ROWS).fill(0);
    const fresh = now.requests.durations.map(([end, count]) => [end, count - (old.get(end) || 0)])
        .filter(([, count]) => count > 0);
    for (const [end, count] of fresh)
        counts[rowOf(end)] += count;
    return {from: before.time, to: now.time, counts, fresh, all: sum(counts),
            rate: (now.requests.total - before.requests.total) / Math.max(0.001, now.time - before.time)};
}

function quantile(sample, fraction) {
    let left = fraction * sample.all;
    for (const [end, count] of sample.fresh) {
        left -= count;
        if (left <= 0)
            return end;
    }
    return 0;
}

function showFigures(now, sample) {
    by("state").className = now.ready ? "ready" : "not-ready";
    put("state", now.draining ? "draining" : now.ready ? "ready" : "not ready");
    put("active", String(now.requests.active));
    put("connections", String(now.connections));
    put("total", String(now.requests.total));
    put("errors", String(now.requests["5xx"]));
    put("lua", bytes(sum(now.workers.map(one => one.lua_memory))));
    put("uptime", seconds(now.uptime));
    if (!sample)
        return;
    put("rate-of", "");
    put("rate", sample.rate.toFixed(sample.rate < 100 ? 1 : 0));
    put("p50", sample.all ? us(quantile(sample, 0.5)) : "–");
    put("p99", sample.all ? us(quantile(sample, 0.99)) : "–");
}

// ---- Drawings ----

// A canvas of as many pixels as the screen has; returns what draws in it, and its size.
function surface(id) {
    const canvas = by(id);
    const scale = window.devicePixelRatio || 1;
    const wide = canvas.clientWidth;
    const high = canvas.clientHeight;
    canvas.width = wide * scale;
    canvas.height = high * scale;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    return {context, wide, high};
}

const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name);

function spans(wide) {
    const end = samples.length ? samples[samples.length - 1].to : 0;
    const x = time => wide - (end - time) / SECONDS * wide;
    return samples.map(sample => [sample, x(sample.from), x(sample.to)]);
}

function drawRate() {
    const {context, wide, high} = surface("rate-plot");
    const most = Math.max(1, ...samples.map(sample => sample.rate));
    context.fillStyle = colour("--main");
    for (const [sample, from, to] of spans(wide)) {
        const tall = sample.rate / most * (high - 2);
        context.fillRect(from, high - tall, Math.max(1, to - from - 0.5), tall);
    }
    put("rate-max", most < 10 ? most.toFixed(1) : String(Math.round(most)));
    by("rate-plot").setAttribute("aria-label", `Requests a second: at most ${Math.round(most)}`);
}

function drawHeat() {
    const {context, wide, high} = surface("heat-plot");
    context.fillStyle = colour("--heat");
    for (const [sample, from, to] of spans(wide)) {
        sample.counts.forEach((count, row) => {
            if (count === 0)
                return;
            context.globalAlpha = 0.15 + 0.85 * Math.sqrt(count / sample.all);
            context.fillRect(from, high - (row + 1) * high / ROWS, Math.max(1, to - from - 0.5), high / ROWS - 0.5);
        });
    }
    const last = samples.filter(sample => sample.all).pop();
    by("heat-plot").setAttribute("aria-label", last
        ? `Latency: half of the last requests took ${us(quantile(last, 0.5))} at most, 99 % ${us(quantile(last, 0.99))}`
        : "Latency: no request has ended since this page was loaded");
}

function draw() {
    drawRate();
    drawHeat();
}

// ---- Polling ----

function show(now) {
    // A server that was started again counts from 0.
    const sample = before && now.time > before.time && now.requests.total >= before.requests.total ? sampleOf(now) : null;
    if (sample)
        samples.push(sample);
    while (samples.length && samples[0].to < now.time - SECONDS)
        samples.shift();
    before = now;
    showFigures(now, sample);
    showTables(now);
    draw();
}

function say(words, isBad) {
    by("contact").classList.toggle("bad", isBad);
    put("contact", words);
}

async function poll() {
    try {
        if (!document.hidden) {
            const reply = await fetch("/status.json", {cache: "no-store"});
            if (!reply.ok)
                throw new Error(`status ${reply.status}`);
            show(await reply.json());
            say("up to date", false);
        }
    } catch (error) {
        say("the server does not answer; these are its last figures", true);
    }
    setTimeout(poll, 1000);
}

// ---- Actions ----

async function send(form) {
    const token = await (await fetch("/token", {cache: "no-store"})).text();
    const body = new URLSearchParams(new FormData(form));
    body.delete("token");
    const reply = await fetch(form.action, {method: "POST", headers: {"X-Sxe-Token": token}, body});
    put("answer", reply.ok ? (await reply.text()).trim() : `refused: status ${reply.status}`);
}

for (const form of document.forms) {
    form.addEventListener("submit", event => {
        event.preventDefault();
        put("answer", "…");
        send(form).catch(() => put("answer", "the server does not answer"));
    });
}

by("charts").hidden = false;
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
poll();
