/** A long wire: many small results over a relay, beside `curl` and `rsync` over the same relay. */
import fs from 'node:fs';
import path from 'node:path';
import { startSshd } from './loopback-sshd.ts';
import type { Goal, Measurement, Place, Prepared, Side } from './measurement.ts';
import { runProcess } from './processes.ts';
import { startRelay, type Wire } from './relay.ts';
import { agent } from './result-sides.ts';
import { SMALL_RESULT_BYTES, smallNames } from './service/answers.ts';
import { startService } from './service/process.ts';

const COUNT = 400;
const ROUND_TRIP_MS = 100;
/** Results at a time on a long wire (docs/sizing.md). */
const PLACES = 16;
const WIRES = {
  clean: { roundTripMs: ROUND_TRIP_MS },
  slow: { roundTripMs: ROUND_TRIP_MS, bytesPerSecond: 2_000_000 },
} as const satisfies Readonly<Record<string, Wire>>;
type WireName = keyof typeof WIRES;
const WORDS: Readonly<Record<WireName, string>> = {
  clean: 'a round trip of 100 ms',
  slow: 'the same, 2 MB/s',
};

/** Emptied before each run, not measured. */
const side =
  (into: string, start: () => ReturnType<Side>): Side =>
  async () => {
    fs.rmSync(into, { recursive: true, force: true });
    fs.mkdirSync(into);
    return await start();
  };

async function prepare(place: Place): Promise<Prepared> {
  const at = (name: string) => path.join(place.directory, name);
  const count = place.quick ? COUNT / 10 : COUNT;
  const service = await startService({ listed: smallNames(count) }, place.directory);
  const sshd = await startSshd(at('ssh'));
  fs.mkdirSync(at('cluster'));
  for (let index = 0; index < count; index += 1)
    fs.writeFileSync(path.join(at('cluster'), `file-${index}`), Buffer.alloc(SMALL_RESULT_BYTES, `${index} `));
  const sides: Record<string, Side> = {};
  const relays: { close: () => Promise<void> }[] = [];
  const words = service.curl('DownloadFileFromCluster', '<relativeFilePath>/part-0/file-0.small</relativeFilePath>');
  const port = Number(new URL(service.url).port);
  const idealSeconds = (count * ROUND_TRIP_MS) / PLACES / 1_000;
  for (const [name, wire] of Object.entries(WIRES)) {
    const [http, ssh] = [await startRelay(port, wire), await startRelay(sshd.port, wire)];
    relays.push(http, ssh);
    const url = service.url.replace(`:${port}`, `:${http.port}`);
    const ours = agent({ url, concurrency: PLACES + 1 }, { files: count, bytes: count * SMALL_RESULT_BYTES }, place);
    sides[`agent, ${name}`] = async () => {
      const { seconds = Number.NaN } = await ours();
      return { seconds, ofIdeal: seconds / idealSeconds };
    };
    const parallel = ['--parallel', '--parallel-max', String(PLACES), `${url}?[1-${count}]`, '-o', `${at('curl')}/#1`];
    sides[`curl, ${name}`] = side(at('curl'), () => runProcess('curl', [...words.slice(1, -1), ...parallel]));
    const shell = [...sshd.ssh.slice(0, -1), String(ssh.port)].join(' ');
    const from = `${sshd.username}@127.0.0.1:${at('cluster')}/`;
    sides[`rsync, ${name}`] = side(at('rsync'), () =>
      runProcess('rsync', ['-r', '-e', shell, from, `${at('rsync')}/`]),
    );
  }
  return {
    sides,
    close: async () => {
      for (const relay of relays) await relay.close();
      await sshd.stop();
      await service.stop();
    },
  };
}

const against = (name: WireName, peer: string, atMost: number): Goal => ({
  what: `${COUNT} results of 20 KB, ${WORDS[name]}, against ${peer === 'curl' ? `\`curl --parallel-max ${PLACES}\`` : '`rsync` over ssh'}`,
  ...{ kind: 'ratio', figure: 'seconds', ours: `agent, ${name}`, peer: `${peer}, ${name}`, atMost },
});

export const wan: Measurement = {
  name: 'wan',
  needs: ['curl', 'rsync', 'ssh', 'ssh-keygen'],
  rounds: 3,
  goals: [
    {
      what: `${COUNT} results of 20 KB, ${WORDS.clean}, against ${COUNT} round trips / ${PLACES} places`,
      ...{ kind: 'limit', figure: 'ofIdeal', ours: 'agent, clean', atMost: 1.3 },
    },
    ...(Object.keys(WIRES) as WireName[]).flatMap((name) => [against(name, 'curl', 1.3), against(name, 'rsync', 3)]),
  ],
  prepare,
};
