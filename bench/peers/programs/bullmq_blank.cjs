// BullMQ: `addBulk` pushes; with the argument `work` a Worker works, until it is ended.
const fs = require("node:fs");
const { Queue, Worker } = require("bullmq");

const setting = (name) => process.env[`BENCH_${name}`];
const JOBS = Number(setting("JOBS"));
const WAIT = 1_000 * Number(setting("WAIT"));
const AT_ONCE = 1_000;
const address = new URL(setting("URL"));
const connection = { host: address.hostname, port: Number(address.port), maxRetriesPerRequest: null };

const start = () => ({ at: performance.now(), used: process.cpuUsage() });

function report(began) {
  const used = process.cpuUsage(began.used);
  const took = { seconds: (performance.now() - began.at) / 1e3, processor: (used.user + used.system) / 1e6 };
  fs.writeFileSync(`${setting("REPORT")}.part`, JSON.stringify(took));
  fs.renameSync(`${setting("REPORT")}.part`, setting("REPORT"));
}

async function push() {
  const queue = new Queue("blank", { connection, defaultJobOptions: { removeOnComplete: true } });
  await queue.waitUntilReady();
  const began = start();
  for (let from = 0; from < JOBS; from += AT_ONCE) {
    const count = Math.min(AT_ONCE, JOBS - from);
    await queue.addBulk(Array.from({ length: count }, (_, k) => ({ name: "blank", data: String(from + k) })));
  }
  report(began);
  await queue.close();
}

function work() {
  let began, handled = 0;
  const handler = async () => {
    began ??= start();
    if (WAIT) await new Promise((resolve) => setTimeout(resolve, WAIT));
    if (++handled === JOBS) report(began);
  };
  new Worker("blank", handler, { connection, concurrency: Number(setting("CONCURRENCY")) });
}

process.argv[2] === "work" ? work() : push();
