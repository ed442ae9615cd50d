/* SPDX-License-Identifier: MIT
 *
 * What: elements, axes and legends of the pages with plots: sxe-http's, and the benchmarks'.
 * Place: apps/http/page.html and bench/page.html name this file in their scripts; who writes such
 *        a page puts it there.
 * Shape: plain functions, which have the page's style: its colours, and its classes.
 */

const COLOURS = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5"];
const DASHES = ["", "7 4", "2 3", "10 3 2 3", "14 4", "4 2"];

/* On an axis: 10 ms, not 10.0 ms. */
function tickTime(us) {
    const [unit, name] = us < 1e3 ? [1, " µs"] : us < 1e6 ? [1e3, " ms"] : [1e6, " s"];
    return +(us / unit).toPrecision(3) + name;
}

function tickNumber(x) {
    const [unit, name] = x < 1e3 ? [1, ""] : x < 1e6 ? [1e3, "k"] : [1e6, "M"];
    return +(x / unit).toPrecision(3) + name;
}

function make(parent, name, attributes, text) {
    const isSvg = name === "svg" || parent instanceof SVGElement;
    const element = isSvg ? document.createElementNS("http://www.w3.org/2000/svg", name)
                          : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {}))
        if (value !== null && value !== undefined) element.setAttribute(key, value);
    if (text !== undefined && text !== null) element.textContent = text;
    if (parent) parent.append(element);
    return element;
}

/* rows: {cells: [texts, or {text, small, data}], class}; the first of a row is its heading. */
function makeRows(table, heads, rows) {
    const line = make(make(table, "thead"), "tr");
    heads.forEach((head, i) => make(line, "th", {scope: "col", class: i ? "number" : null}, head));
    const body = make(table, "tbody");
    for (const row of rows) {
        const tr = make(body, "tr", {class: row.class});
        row.cells.forEach((cell, i) => {
            const shown = typeof cell === "object" ? cell : {text: cell};
            const td = i ? make(tr, "td", {class: "number", ...shown.data}, shown.text)
                         : make(tr, "th", {scope: "row", ...shown.data}, shown.text);
            if (shown.small) make(td, "small", {}, shown.small);
        });
    }
}

/* Steps of 1, 2 or 5 times a power of ten. */
function linearTicks(low, high, number) {
    const raw = (high - low) / number || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(x => x * power).find(x => x >= raw * 0.999);
    const ticks = [];
    for (let x = Math.ceil(low / step - 1e-9) * step; x <= high * (1 + 1e-9); x += step) ticks.push(x);
    return ticks;
}

function logTicks(low, high, number) {
    const decades = Math.log10(high / low);
    const multiples = decades > number ? [1] : decades > number / 2 ? [1, 3] : [1, 2, 5];
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
        for (const multiple of multiples)
            if (multiple * 10 ** power >= low * 0.999 && multiple * 10 ** power <= high * 1.001)
                ticks.push(multiple * 10 ** power);
    return ticks;
}

/* An axis {low, high, log} from pixel a to pixel b. */
function scaleOf(axis, a, b) {
    const of = axis.log ? Math.log : x => x;
    const span = of(axis.high) - of(axis.low) || 1;
    return x => a + (of(Math.max(x, axis.log ? axis.low : -Infinity)) - of(axis.low)) / span * (b - a);
}

function logAxis(values, format) {
    const positive = values.filter(x => x > 0);
    const low = positive.length ? Math.min(...positive) : 1;
    const high = positive.length ? Math.max(...positive) : 10;
    return {log: true, low: low / 1.15, high: Math.max(high, low * 2) * 1.15, format};
}

/* Axes {low, high, log, format, ticks, label} around a box {left, right, top, bottom, x, y} in a
 * plot of its `width`; x() and y() are its scales. */
function drawGrid(svg, box, x, y) {
    for (const value of y.ticks || (y.log ? logTicks : linearTicks)(y.low, y.high, (box.bottom - box.top) / 45)) {
        const at = box.y(value);
        make(svg, "line", {class: "grid", x1: box.left, x2: box.right, y1: at, y2: at});
        make(svg, "text", {class: "soft", x: box.left - 8, y: at + 4, "text-anchor": "end"}, y.format(value));
    }
    let free = 0;
    for (const value of x.ticks || linearTicks(x.low, x.high, (box.right - box.left) / 90)) {
        const at = box.x(value), text = x.format(value), half = text.length * 3.5 + 4;
        make(svg, "line", {class: "grid", x1: at, x2: at, y1: box.top, y2: box.bottom});
        if (at - half < free || at + half > box.width) continue;
        make(svg, "text", {class: "soft", x: at, y: box.bottom + 18, "text-anchor": "middle"}, text);
        free = at + half;
    }
    make(svg, "line", {class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom});
    make(svg, "text", {class: "soft", x: box.right, y: box.bottom + 35, "text-anchor": "end"}, x.label);
}

/* A button for each of the series {name, colour, dash}: it sets isHidden, and draws again. */
function makeLegend(figure, series, draw) {
    const legend = make(figure, "div", {class: "legend"});
    for (const one of series) {
        const button = make(legend, "button", {type: "button", "aria-pressed": "true"});
        const svg = make(button, "svg", {viewBox: "0 0 26 10", "aria-hidden": "true"});
        make(svg, "line", {x1: 0, x2: 26, y1: 5, y2: 5, style: `stroke: var(${one.colour})`,
                           "stroke-width": 2.5, "stroke-dasharray": one.dash});
        make(button, "span", {}, one.name);
        button.addEventListener("click", () => {
            one.isHidden = !one.isHidden;
            button.setAttribute("aria-pressed", String(!one.isHidden));
            draw();
        });
    }
}
