"use strict";
const list = document.querySelector("#posts"), form = document.querySelector("#new");

new EventSource("/events?after=" + list.dataset.seq).addEventListener("post", event => {
    const holder = document.createElement("template");
    holder.innerHTML = event.data; // the server has escaped it
    const post = holder.content.firstElementChild, old = document.getElementById(post.id);
    if (old) old.replaceWith(post); else list.prepend(post);
});

form?.addEventListener("submit", async event => {
    event.preventDefault();
    const status = form.querySelector("[role=status]");
    status.textContent = "Sending ...";
    try {
        const reply = await fetch(form.action, {
            method: "POST", headers: { "X-CSRF-Token": form.dataset.token }, body: new FormData(form) });
        status.textContent = reply.ok ? "" : (await reply.json()).error;
        if (reply.ok) form.reset();
    } catch (error) {
        status.textContent = "The server does not answer: try again.";
    }
});
