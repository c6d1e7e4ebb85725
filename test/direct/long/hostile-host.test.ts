/** Hosts that fall silent, flood, lie, or send what nobody asked for; each behind a real sshd. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../support/e2e-until.ts';
import { needs, SSH } from '../../support/needs.ts';
import { Sshd } from '../../support/sshd.ts';
import { commandLines, SshPlace } from '../ssh-place.ts';
import { CuttableLine } from '../sshd.ts';

/** Nothing of a transfer runs any more, and nothing of it lies anywhere. */
async function expectNothingLeft(place: SshPlace): Promise<void> {
  await until('its programs to end', () => !commandLines().some((line) => line.includes(place.runtime)));
  expect(place.files(place.runtime)).toEqual([]);
  expect(fs.readdirSync(place.directory).filter((name) => name.startsWith('evil'))).toEqual([]);
}

describe('a host', needs(...SSH), () => {
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await Sshd.start();
  });
  afterAll(() => sshd.stop());

  it('that falls silent in the middle is given up, with words', async () => {
    const place = new SshPlace();
    const line = await CuttableLine.to(sshd.port);
    line.silentAfterBytes = 1_000_000;
    // More than several tries together bring, and nothing in it is like what came before.
    place.put('11/large', randomBytes(20_000_000));
    const lent = await place.lend(sshd, { host: `127.0.0.1:${line.port}` });
    await expect(place.fetch(place.transfer({ idleMs: 1_500 }), lent, ['11/large'])).rejects.toMatchObject({
      code: 'interrupted',
      // However often it would be tried again after a cut.
      message: expect.stringMatching(
        /^the transfer from 127\.0\.0\.1 stood still: the program \w+ (did|brought) nothing for (1\.5|2) s/,
      ),
    });
    expect(line.connections).toBe(1);
    expect(place.came.size).toBe(0);
    await expectNothingLeft(place);
  });

  it('whose sshd is frozen is given up', async () => {
    const frozen: number[] = [];
    onTestFinished(() => {
      for (const pid of frozen) process.kill(pid, 'SIGKILL');
    });
    const place = new SshPlace();
    place.put('11/a', 'a');
    const note = path.join(place.directory, 'parent');
    const go = path.join(place.directory, 'go');
    const wait = `n=0; until [ -e ${go} ] || [ $n -gt 300 ]; do sleep 0.1; n=$((n + 1)); done`;
    const command = place.script('freezing', `echo $PPID > ${note}`, wait, 'exec sh -c "$SSH_ORIGINAL_COMMAND"');
    const lent = await place.lend(sshd, { command });
    const fetched = place.fetch(place.transfer({ idleMs: 1_500 }), lent, ['11/a']);
    fetched.catch(() => {});
    await until('the session', () => fs.existsSync(note) && fs.readFileSync(note, 'utf8').endsWith('\n'));
    const pid = Number(fs.readFileSync(note, 'utf8'));
    frozen.push(pid);
    process.kill(pid, 'SIGSTOP');
    fs.writeFileSync(go, '');
    await expect(fetched).rejects.toMatchObject({
      message: expect.stringMatching(/^the transfer from 127\.0\.0\.1 stood still: /),
    });
    await expectNothingLeft(place);
  });

  it('that is slow, but goes on, may take several times as long', async () => {
    const place = new SshPlace();
    place.put('11/large', Buffer.alloc(8_000_000, 'large'));
    const lent = await place.lend(sshd);
    const startedMs = performance.now();
    const options = { bytesPerSecond: 400_000 };
    // On a busy machine, only the beginning of a session takes seconds.
    await place.fetch(place.transfer({ idleMs: 9_000 }), lent, ['11/large'], options);
    expect(performance.now() - startedMs).toBeGreaterThan(18_000);
    expect(place.came.get('11/large')).toHaveLength(8_000_000);
  });

  it.each<[string, string]>([
    ['floods the standard error', 'yes "flood flood" >&2'],
    ['says nothing', 'exec sleep 100'],
    ['floods with random bytes', 'exec cat /dev/urandom'],
  ])('that %s instead of rsync ends, and leaves nothing', async (_, command) => {
    const place = new SshPlace();
    place.put('11/a', 'a');
    place.hostIs(command);
    const lent = await place.lend(sshd, { allow: false });
    await place.fetch(place.transfer({ idleMs: 400 }), lent, ['11/a']).catch(() => {});
    expect(place.came.size).toBe(0);
    expect(place.files(place.arrival)).toEqual([]);
    await expectNothingLeft(place);
  });

  it('that sends lines without end before it names its protocol cannot be reached', async () => {
    const server = net.createServer((socket) => {
      const more = () => {
        while (socket.writable && socket.write('this is a banner\r\n'.repeat(100)));
      };
      socket.on('error', () => {}).on('drain', more);
      more();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const place = new SshPlace();
    const { port } = server.address() as net.AddressInfo;
    const lent = await place.lend(sshd, { host: `127.0.0.1:${port}` });
    await expect(place.fetch(place.transfer(), lent, ['11/a'])).rejects.toMatchObject({ code: 'unreachable' });
    await expectNothingLeft(place);
  });

  describe('that sends by rsync', () => {
    /** Makes rsync believe every name, as those before 3.2.5 do. */
    const trusting = (place: SshPlace) => place.rsyncIs('exec $RSYNC --trust-sender "$@"');

    it.each<[string, string, string, boolean, boolean]>([
      ['another file', '11/asked', '11/plant', true, false],
      ['another file, which rsync believes', '11/asked', '11/plant', true, true],
      ['a way up', '11/asked', '../plant', false, false],
      ['a way up, which rsync believes', '11/asked', '../plant', false, true],
      ['a link', '11/asked', '11/alink', false, true],
      ['a pipe', '11/asked', '11/apipe', false, true],
    ])('%s is found out, and nothing of it stays', async (_, from, to, isFile, isTrusting) => {
      const place = new SshPlace();
      for (const name of ['11/asked', '11/plant', '../plant']) place.put(name, `the content of ${name}`);
      fs.symlinkSync('/etc/passwd', path.join(place.cluster, '11/alink'));
      execFileSync('mkfifo', [path.join(place.cluster, '11/apipe')]);
      place.hostSwaps(from, to);
      if (isTrusting) trusting(place);
      const lent = await place.lend(sshd, { allow: false });
      const fetched = place.fetch(place.transfer({ idleMs: 5_000 }), lent, [from]);
      const ends = await fetched.then(
        () => 'passed over',
        (error: unknown) => String(error),
      );
      if (isFile && isTrusting) expect(ends).toContain('sends a file that was not requested');
      expect(place.came.size).toBe(0);
      expect(place.files(place.jobDirectory)).toEqual([]);
      expect(fs.existsSync(path.join(place.jobDirectory, 'plant'))).toBe(false);
      await expectNothingLeft(place);
    });

    it('hundreds of files that nobody asked for is stopped at the first, where rsync believes it', async () => {
      const place = new SshPlace();
      const names = Array.from({ length: 300 }, (_, number) => `asked/f${number}`);
      for (const name of names) place.put(name.replace('asked', 'plant'), Buffer.alloc(100_000));
      place.hostSwaps('asked/', 'plant/');
      trusting(place);
      const lent = await place.lend(sshd, { allow: false });
      await expect(place.fetch(place.transfer(), lent, names)).rejects.toMatchObject({
        code: 'unexpected-answer',
        message: expect.stringMatching(/^127\.0\.0\.1 sends a file that was not requested: "plant\//),
      });
      expect(place.came.size).toBe(0);
      expect(place.files(place.jobDirectory)).toEqual([]);
    });
  });
});
