/** Jobs that grow all the time, against `ssh host tail -F` for each: processor time and memory. */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LINE_BYTES, textOf } from './growth.ts';
import { startSshd } from './loopback-sshd.ts';
import type { Figures, Measurement, Prepared } from './measurement.ts';
import { type Started, startProcess, type Usage, usageOf } from './processes.ts';
import { AgentPlace, startMiddleware, untilAsked } from './watching.ts';

const FILE_BYTES = 3_000;
const BYTES_PER_SECOND = 10_000;
const INTERVAL_SECONDS = 1;
/** Each line is written as it comes, as loggers do; written by the block, `tail` would have less to do. */
const WRITE_EVERY_MS = 10;

export const growingJobs: Measurement = {
  name: 'growing-jobs',
  needs: ['ssh', 'tail'],
  goals: [
    {
      what: '100 jobs growing by 10 KB/s, line by line, against `ssh host tail -F` for each: processor time',
      ...{ kind: 'ratio', figure: 'coreShare', ours: 'agent', peer: 'ssh', atMost: 0.5 },
    },
    {
      what: 'the same: memory (shared pages divided)',
      ...{ kind: 'ratio', figure: 'proportionalBytes', ours: 'agent', peer: 'ssh', atMost: 0.2 },
    },
  ],
  prepare: async (place): Promise<Prepared> => {
    const jobs = place.quick ? 10 : 100;
    const seconds = place.quick ? 3 : 15;
    const sshd = await startSshd(path.join(place.directory, 'sshd'));
    return {
      sides: {
        agent: () => followByAgent(fs.mkdtempSync(path.join(place.directory, 'agent-')), jobs, seconds),
        ssh: async () => {
          const directory = fs.mkdtempSync(path.join(place.directory, 'ssh-'));
          return await followBySsh({
            directory,
            jobs,
            seconds,
            ssh: [...sshd.ssh, `${sshd.username}@127.0.0.1`],
            sshdPid: sshd.pid,
          });
        },
      },
      close: () => sshd.stop(),
    };
  },
};

async function followByAgent(directory: string, jobs: number, seconds: number): Promise<Figures> {
  const middleware = await startMiddleware({ fileBytes: FILE_BYTES, growingBytesPerSecond: BYTES_PER_SECOND });
  const place = new AgentPlace(directory);
  const watching = { jobs, files: ['stdout'] as const, intervalSeconds: INTERVAL_SECONDS, requestsPerMinute: 60_000 };
  place.prepare(middleware, watching);
  const agent = place.start();
  await untilAsked(agent, middleware, jobs * 3);
  const used = await usageWithin(seconds, () => [usageOf(agent.pid)]);
  await agent.stop();
  await middleware.stop();
  return used;
}

interface BySsh {
  readonly directory: string;
  readonly jobs: number;
  readonly seconds: number;
  /** The words of the client, host included. */
  readonly ssh: readonly string[];
  readonly sshdPid: number;
}

/** Everything that such a `tail` needs counts: the client, the sshd's processes for it, and the tail. */
async function followBySsh({ directory, jobs, seconds, ssh, sshdPid }: BySsh): Promise<Figures> {
  const [program = 'ssh', ...args] = ssh;
  const files = Array.from({ length: jobs }, (_, index) => path.join(directory, `${index + 1}.txt`));
  for (const file of files) fs.writeFileSync(file, textOf(0, FILE_BYTES));
  const clients: Started[] = [];
  for (const file of files) {
    clients.push(
      startProcess('sh', [
        '-c',
        'out=$1; shift; exec "$@" > "$out"',
        'sh',
        `${file}.copy`,
        program,
        ...args,
        `tail -F -c +1 ${file}`,
      ]),
    );
    await sleep(50);
  }
  const descriptors = files.map((file) => fs.openSync(file, 'a'));
  const startedMs = performance.now();
  let length = FILE_BYTES;
  const writer = setInterval(() => {
    const due = FILE_BYTES + ((performance.now() - startedMs) / 1000) * BYTES_PER_SECOND;
    for (; length + LINE_BYTES <= due; length += LINE_BYTES) {
      const line = textOf(length, length + LINE_BYTES);
      for (const descriptor of descriptors) fs.writeSync(descriptor, line);
    }
  }, WRITE_EVERY_MS);
  await sleep(2_000);
  const used = await usageWithin(seconds, () => [usageOf(sshdPid), ...clients.map(({ pid }) => usageOf(pid))]);
  clearInterval(writer);
  for (const descriptor of descriptors) fs.closeSync(descriptor);
  const last = clients.at(-1);
  // `tail` may look at its file only once a second.
  await last?.until('each copy was complete', () =>
    files.every((file) => fs.statSync(`${file}.copy`).size === fs.statSync(file).size),
  );
  await Promise.all(clients.map((client) => client.stop()));
  return used;
}

async function usageWithin(seconds: number, look: () => readonly Usage[]): Promise<Figures> {
  const total = () => {
    const all = look();
    const sum = (of: (usage: Usage) => number) => all.reduce((added, usage) => added + of(usage), 0);
    return {
      cpuSeconds: sum((usage) => usage.cpuSeconds),
      residentBytes: sum((usage) => usage.residentBytes),
      proportionalBytes: sum((usage) => usage.proportionalBytes),
    };
  };
  const before = total();
  await sleep(seconds * 1000);
  const { cpuSeconds, ...memory } = total();
  return { coreShare: (cpuSeconds - before.cpuSeconds) / seconds, ...memory };
}
