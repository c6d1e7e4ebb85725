/** The sources of a report: output of commands, journalctl and a log file. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { printedBy, runProgram } from '../../system/program.ts';

const MAX_SECTION_BYTES = 1024 * 1024;
const LOG_LINES = 500;
const MAX_LOG_BYTES = 256 * 1024;
const JOURNAL_MS = 30_000;

/**
 * The output of a command of this program, and its exit code. A command above a limit of time or size is stopped, and
 * its output so far is kept.
 */
export async function printedByProgram(args: readonly string[], totalMs: number, signal: AbortSignal): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const talk = async (output: AsyncIterable<Buffer>) => {
    for await (const piece of output) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > MAX_SECTION_BYTES) throw new JobtailError('answer-too-large', `more than ${MAX_SECTION_BYTES} bytes`);
    }
  };
  const line = [...process.execArgv, process.argv[1] ?? '', ...args];
  const env = { ...process.env, NO_COLOR: '1' };
  const end = await runProgram({ command: process.execPath, args: line, env, talk, limit: { totalMs }, signal }).then(
    ({ code, stderr }) => `${stderr}exit code: ${code}`,
    (thrown: unknown) => `not complete: ${asJobtailError(thrown).message}`,
  );
  return `${Buffer.concat(pieces).toString('utf8').slice(0, MAX_SECTION_BYTES)}${end}`;
}

export async function journalOf(configFile: string | undefined, signal: AbortSignal): Promise<string> {
  const instance = /^\/etc\/agent\/([\w.-]+)\/config\.yaml$/.exec(configFile ?? '')?.[1];
  const unit = instance === undefined ? 'agent.service' : `agent@${instance}.service`;
  const args = ['--unit', unit, '--lines', String(LOG_LINES), '--no-pager', '--quiet', '--output', 'short-iso'];
  const limit = { totalMs: JOURNAL_MS };
  try {
    const { code, printed, stderr } = await printedBy({
      command: 'journalctl',
      args,
      limit,
      maxBytes: 4 * MAX_SECTION_BYTES,
      signal,
    });
    if (code !== 0) throw new JobtailError('local-io', `journalctl ended with exit code ${code}: ${stderr}`);
    const text = lastLines(printed.toString('utf8'));
    if (text !== '') return text;
    throw new JobtailError('local-io', `the journal has no line of ${unit}`);
  } catch (thrown) {
    const { code, message } = asJobtailError(thrown);
    const hint = 'if the standard error of the agent goes to a file, name it: agent report --log FILE';
    throw new JobtailError(code, message, { hint });
  }
}

export async function endOfFile(file: string): Promise<string> {
  const handle = await fs.open(path.resolve(file), fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new JobtailError('local-io', `${file} is no regular file`);
    const length = Math.min(stats.size, MAX_LOG_BYTES + 1);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, stats.size - length);
    return lastLines(buffer.toString('utf8', 0, bytesRead));
  } finally {
    await handle.close();
  }
}

/** A cut line is omitted: it may begin in the middle of a secret. */
function lastLines(text: string): string {
  const end = text.slice(-MAX_LOG_BYTES);
  const lines = end.split('\n').slice(end.length < text.length ? 1 : 0);
  return lines.slice(-LOG_LINES - 1).join('\n');
}
