/** The log never blocks, never grows without bound and never fails the agent. */
import fs from 'node:fs';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createLog, fileOutput, LogStream, logFor, standardError } from '../../src/daemon/log.ts';
import { Secrets } from '../../src/redact.ts';
import { SmallDisk } from '../support/e2e-mount.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const linesOf = (text: string) =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('the log', () => {
  it('writes JSON lines with fixed names, and changes its level while in use', () => {
    const output = new PassThrough();
    const log = createLog({ level: 'info', stream: new LogStream({ output }) });
    log.info({ jobId: '501' }, 'job followed');
    log.debug({}, 'not said');
    log.level = 'debug';
    log.debug({ scope: 'job 501' }, 'said');
    const lines = linesOf(String(output.read()));
    expect(lines).toMatchObject([
      { level: 'info', jobId: '501', msg: 'job followed' },
      { level: 'debug', scope: 'job 501', msg: 'said' },
    ]);
    expect(Date.parse(String(lines[0]?.['time']))).toBeGreaterThan(0);
  });

  it('says what comes from outside as text, and without secrets', () => {
    const output = new PassThrough();
    const secrets = new Secrets();
    const log = createLog({ level: 'info', stream: new LogStream({ output }), secrets });
    secrets.add('session', '0123456789-abcdefghij');
    const err = 'a\u001b[31m\u009b2J\u202eb: 0123456789-abcdefghi';
    log.warn({ err, file: '/11/0123456789-abcdefghij', jobs: 2, changes: ['\u009b'] }, `first\nsecond: ${err}`);
    const text = String(output.read()).trimEnd();
    expect(text).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    const shown = 'a\\u{001B}[31m\\u{009B}2J\\u{202E}b: ***';
    expect(JSON.parse(text)).toMatchObject({
      changes: ['\\u{009B}'],
      err: shown,
      file: '/11/***',
      jobs: 2,
      msg: `first\nsecond: ${shown}`,
    });
  });

  it('writes lines for people to a terminal', async () => {
    const terminal = { ...Object.getOwnPropertyDescriptor(process.stderr, 'isTTY'), configurable: true };
    Object.defineProperty(process.stderr, 'isTTY', { configurable: true, value: true });
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    onTestFinished(() => {
      Object.defineProperty(process.stderr, 'isTTY', terminal);
      written.mockRestore();
    });
    const stream = new LogStream({ output: new PassThrough() });
    const log = await logFor({ level: 'info', stream });
    log.warn({ jobId: '501', pid: 7, err: 'x' }, 'job followed');
    const text = stripVTControlCharacters(written.mock.calls.join(''));
    expect(text).toMatch(/^\[\d\d:\d\d:\d\d\] WARN: job followed jobId=501 pid=7: x\n$/);
  });

  it('begins its lines with the priority that the journal wants', () => {
    const output = new PassThrough();
    const log = createLog({ level: 'trace', stream: new LogStream({ output, journal: true }) });
    for (const level of ['error', 'warn', 'info', 'debug'] as const) log[level]({}, level);
    expect(String(output.read()).match(/^.{4}/gm)).toEqual(['<3>{', '<4>{', '<6>{', '<7>{']);
    // The journal is known by the standard error, which is no file.
    const at = fs.fstatSync(2);
    vi.spyOn(fs, 'fstatSync').mockReturnValue(Object.assign(at, { isFile: () => false }));
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    onTestFinished(() => void vi.restoreAllMocks());
    for (const journal of [`${at.dev}:${at.ino}`, `${at.dev}:0`, undefined])
      standardError({ JOURNAL_STREAM: journal }).write('{"level":"warn"}\n');
    expect(written.mock.calls.flat()).toEqual(['<4>{"level":"warn"}\n', '{"level":"warn"}\n', '{"level":"warn"}\n']);
  });
});

describe('a log that nobody takes', () => {
  it('drops lines beyond a bound, counts them, and says the number when lines are taken again', () => {
    const output = new PassThrough({ highWaterMark: 1 });
    const stream = new LogStream({ output });
    const log = createLog({ level: 'info', stream });
    for (let times = 0; times < 2; times++) {
      const before = stream.lost;
      for (let line = 0; line < 3_000; line++) log.info({ text: 'x'.repeat(1_000) }, 'full');
      const lines = stream.lost - before;
      expect(lines).toBeGreaterThan(500);
      expect(output.writableLength + output.readableLength).toBeLessThan(2 * 1024 * 1024);

      while (output.read() !== null);
      for (const phrase of ['again', 'more']) log.info({}, phrase);
      const msg = 'log lines lost, their reader is too slow';
      const time = expect.stringMatching(/^\d{4}-.*Z$/);
      const read = [output.read(), output.read(), output.read()].join('');
      expect(linesOf(read)).toMatchObject([
        { level: 'warn', time, lines, msg },
        { level: 'info', msg: 'again' },
        { level: 'info', msg: 'more' },
      ]);
    }
  });

  it('counts the lines that a full disk does not take, beyond those that wait', () => {
    const full = fs.openSync('/dev/full', 'w');
    onTestFinished(() => fs.closeSync(full));
    const stream = new LogStream({ output: fileOutput(full) });
    const line = `${'x'.repeat(1024 * 1024 - 1)}\n`;
    stream.write(line);
    expect(stream.lost).toBe(0);
    for (let lines = 0; lines < 3; lines++) stream.write(line);
    expect(stream.lost).toBe(3);
  });

  it('holds whole lines, all of them in order, when a disk that was full takes lines again', (context) => {
    const disk = SmallDisk.mount(context, temporaryDirectory(), 64).directory;
    const log = path.join(disk, 'log');
    const file = fs.openSync(log, 'a');
    context.onTestFinished(() => fs.closeSync(file));
    const filler = path.join(disk, 'filler');
    fs.writeFileSync(filler, Buffer.alloc(56 * 1024));
    const stream = new LogStream({ output: fileOutput(file) });
    const lines = Array.from({ length: 200 }, (_, number) => `line ${number} ${'x'.repeat(100)}\n`);
    for (const line of lines) stream.write(line);
    expect(fs.readFileSync(log, 'utf8')).not.toBe(lines.join(''));
    fs.rmSync(filler);
    stream.write('again\n');
    expect(fs.readFileSync(log, 'utf8')).toBe(`${lines.join('')}again\n`);
    expect(stream.lost).toBe(0);
  });

  it('survives a reader that has gone', async () => {
    const output = new PassThrough();
    const log = createLog({ level: 'info', stream: new LogStream({ output }) });
    // Without a listener of its own, this error would end the process.
    output.destroy(new Error('EPIPE'));
    await new Promise((resolve) => output.once('close', resolve));
    expect(() => log.info({}, 'to no reader')).not.toThrow();
  });
});
