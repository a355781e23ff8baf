// Loaded before a program of ours to watch: it may connect to this machine only. What it tries elsewhere fails, and
// is written to the file ELSEWHERE.
const { appendFileSync } = require("node:fs");
const net = require("node:net");
const LOOPBACK = new Set(["127.0.0.1", "::1", "localhost", undefined]);
const connect = net.Socket.prototype.connect;

net.Socket.prototype.connect = function (...words) {
  const given = Array.isArray(words[0]) ? words[0][0] : words[0];
  const host = typeof given === "object" ? (given.host ?? (given.path && "localhost")) : words[1];
  if (!LOOPBACK.has(host)) {
    appendFileSync(process.env.ELSEWHERE, `${host}\n`);
    throw new Error(`not loopback: ${host}`);
  }
  return connect.apply(this, words);
};
