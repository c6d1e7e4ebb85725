/** Somebody else's hands on the mirrors: what they changed is found, shown by `verify`, and mended from the remote file. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { mirroredJob } from '../../support/e2e-job.ts';

const CONTENT = Buffer.from(Array.from({ length: 200 }, (_, line) => `${line} Příliš žluťoučký kůň\n`).join(''));
/** What people do to a file; test/agent/live/catch-up.test.ts has more, and what is done while the agent runs. */
const EDITS: Readonly<Record<string, (file: string) => void>> = {
  edited: (file) => fs.writeFileSync(file, Buffer.from(CONTENT).fill('#', 4_000, 4_001)),
  'cut by its last byte': (file) => fs.truncateSync(file, CONTENT.length - 1),
  'longer by a byte': (file) => fs.appendFileSync(file, '\n'),
  deleted: (file) => fs.rmSync(file),
};

describe.concurrent('a mirror', () => {
  it('that is changed while no agent runs is found by verify, which changes nothing, and mended later', async (context) => {
    const { place, job, mirror, agent } = await mirroredJob(context, CONTENT);
    agent.signal('SIGTERM');
    await agent.ended;
    for (const [what, edit] of Object.entries(EDITS)) {
      edit(mirror);
      const changed = fs.existsSync(mirror) ? fs.readFileSync(mirror) : undefined;
      const verified = await place.agent('verify', job.jobId);
      expect(verified, what).toMatchObject({ code: 1 });
      expect(verified.stdout, what).toMatch(/^(DIFFERENT|UNPROVEN) +task \d+ stdout: /m);
      expect(fs.existsSync(mirror) ? fs.readFileSync(mirror) : undefined, what).toEqual(changed);
      expect(await place.agent('sync', job.jobId), what).toMatchObject({ code: 0 });
      expect(fs.readFileSync(mirror).equals(CONTENT), what).toBe(true);
    }
    expect(fs.readdirSync(path.dirname(mirror)).filter((name) => name.startsWith('stdout'))).toEqual(['stdout.log']);
    await place.verified(job.jobId);
  });

  it.for(['file', 'directory'] as const)(
    'with a link planted as its %s is not written through it',
    async (kind, context) => {
      const { place, job, mirror, stdout, agent } = await mirroredJob(context, CONTENT);
      const elsewhere = path.join(place.directory, 'elsewhere');
      fs.mkdirSync(elsewhere);
      const precious = path.join(elsewhere, 'stdout.log');
      fs.writeFileSync(precious, 'precious');
      const at = kind === 'file' ? mirror : path.dirname(mirror);
      fs.renameSync(at, `${at}.kept`);
      fs.symlinkSync(kind === 'file' ? precious : elsewhere, at);
      fs.appendFileSync(stdout, 'more\n');

      const said = await agent.logs('operation failed', { err: `${at} is not a ${kind}` });
      expect(said).toMatchObject({ code: 'local-io', hint: `move ${at} out of the way` });
      const file = (await place.status()).jobs[0]?.files.find((one) => one.path === mirror);
      expect(file?.error).toMatchObject({ code: 'local-io' });
      expect(await place.agent('verify', job.jobId)).toMatchObject({ code: 1, stderr: '' });
      fs.unlinkSync(at);
      fs.renameSync(`${at}.kept`, at);
      await place.mirrored(job, 'stdout');
      expect(fs.readdirSync(elsewhere)).toEqual(['stdout.log']);
      expect(fs.readFileSync(precious, 'utf8')).toBe('precious');
    },
  );
});
