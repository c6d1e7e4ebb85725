/** `agent report`: one text file for a request for help, without configured secrets and what looks like one. */
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Config } from '../../config/config.ts';
import { keepSecrets } from '../../config/secrets.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { printableJson, printableLines } from '../../printable.ts';
import { Secrets } from '../../redact.ts';
import { printedBy } from '../../system/program.ts';
import { addressOf } from '../../view/link.ts';
import { requestAnswer } from '../check/description.ts';
import { type ConfigOption, configFileOf, configurationAsOwner } from '../configuration.ts';
import { untilStopped } from '../process.ts';
import { notWritten } from '../put-file.ts';
import { versionReport } from './version.ts';

interface ReportOptions extends ConfigOption {
  readonly output?: string;
  readonly log?: string;
}

const LOG_LINES = '500';
const JOURNAL_FORMAT = ['--no-pager', '--quiet', '--output', 'short-iso'];
const STANDARD_OUTPUT = '-';
/** Of a program: `check` waits for each step of a connection that does not answer. */
const LIMITS = { limit: { totalMs: 300_000 }, maxBytes: 4 * 1024 * 1024 } as const;
/** Arguments of configured commands may be secrets. */
const COMMAND_KEYS = /^argv$|command$/i;

export async function report(options: ReportOptions): Promise<void> {
  const text = () => untilStopped((signal) => reportText(options, signal));
  if (options.output === STANDARD_OUTPUT) return void process.stdout.write(await text());
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const file = path.resolve(options.output ?? `jobtail-report-${time}.txt`);
  // Before the command becomes the owner of the state: the file belongs to the caller.
  const failed = (thrown: unknown) => {
    throw notWritten(file, thrown, ', or name another file with --output FILE');
  };
  const opened = await fs.open(file, 'wx', 0o600).catch(failed);
  try {
    const whole = await text();
    await opened.writeFile(whole).catch(failed);
    process.stdout.write(`${file}\n`);
  } catch (thrown) {
    // The file of root stays, empty, when the command has become another user.
    await fs.rm(file, { force: true }).catch(() => {});
    throw thrown;
  } finally {
    await opened.close();
  }
}

async function reportText(options: ReportOptions, signal: AbortSignal): Promise<string> {
  const configFile = configFileOf(options);
  // As the caller: the log may be root's. The commands become the owner of the state by themselves.
  const status = await textOf(() => printedByAgent(['status', '--json', '--config', configFile], signal));
  const check = await textOf(() => printedByAgent(['check', '--config', configFile], signal));
  const log = await textOf(() => logOf(options.log, configFile, signal));
  const config = await configurationAsOwner(options).catch(asJobtailError);
  const secrets = new Secrets(Number.POSITIVE_INFINITY);
  const isRead = !(config instanceof JobtailError);
  const unread = isRead ? await keepSecrets(config, secrets, { env: process.env, signal, withPrograms: true }) : [];
  const sections = {
    report: headOf(unread),
    version: await textOf(() => printableJson(versionReport(), 2)),
    configuration: await textOf(() => configurationText(config)),
    status,
    check,
    metrics: await textOf(() => metricsOf(isRead ? config.metrics.listen : null, signal)),
    log: withoutAssignments(log),
  };
  signal.throwIfAborted();
  const texts = Object.entries(sections).map(
    ([name, text]) => `\n==== ${name} ====\n${secrets.hideAll(withoutCredentials(text)).trimEnd()}\n`,
  );
  return `jobtail report. Read it before you send it. Secrets are replaced by ***.\n${texts.join('')}`;
}

/** A section that cannot be read contains the error instead. */
async function textOf(read: () => Promise<string> | string): Promise<string> {
  try {
    return printableLines(await read());
  } catch (thrown) {
    const { message, hint } = asJobtailError(thrown);
    return printableLines(`not available: ${message}${hint === undefined ? '' : `\n${hint}`}`);
  }
}

function headOf(unread: readonly string[]): string {
  const proxies = Object.keys(process.env).filter((name) => /^(https?|all|no)_proxy$/i.test(name));
  const lines = [
    `time: ${new Date().toISOString()}`,
    `system: ${os.type()} ${os.release()}, ${os.availableParallelism()} processors, ${os.totalmem()} bytes of memory`,
    `user: ${process.geteuid?.() ?? 'unknown'}`,
    `environment variables that are set: ${proxies.length === 0 ? 'none of a proxy' : proxies.join(', ')}`,
    ...unread.map((message) => `a secret cannot be read, so this report was not searched for it: ${message}`),
  ];
  return printableLines(lines.join('\n'));
}

/** With the defaults, without the comments of the file. @throws JobtailError why it cannot be read */
function configurationText(config: Config | JobtailError): string {
  if (config instanceof JobtailError) throw config;
  const shown = (key: string, value: unknown) =>
    COMMAND_KEYS.test(key) && Array.isArray(value) ? [value[0], `(${value.length - 1} arguments, not shown)`] : value;
  const notify = config.notify.map((rule) => ({ ...rule, url: rule.url && `${new URL(rule.url).origin}/***` }));
  return printableJson(JSON.parse(JSON.stringify({ ...config, notify }, shown)), 2);
}

async function metricsOf(listen: Config['metrics']['listen'], signal: AbortSignal): Promise<string> {
  if (listen === null) return 'not available: metrics.listen is not set';
  const url = `${addressOf(listen)}metrics`;
  const { status, text } = await requestAnswer(url, signal);
  return status === 200 ? text : `not available: ${url} answers with status ${status}`;
}

function withoutCredentials(text: string): string {
  return text
    .replaceAll(/(\b[a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@"'<>]{1,1000}@/gi, '$1***@')
    .replaceAll(/(\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s?"'<>]{1,1000}\?)[^\s"'<>]+/gi, '$1***');
}

/** Removes values that are assigned to a word for a secret: `password=...`, `"token": "..."`. */
function withoutAssignments(text: string): string {
  return text.replaceAll(
    /((?:pass(?:word|wd|phrase)?|token|secret|api[-_]?key|session[-_]?code)["']?\s{0,4}[=:]\s{0,4}["']?)[^\s"',;&]+/gi,
    '$1***',
  );
}

/** The output of a command of this program, and its exit code. */
async function printedByAgent(words: readonly string[], signal: AbortSignal): Promise<string> {
  const args = [...process.execArgv, process.argv[1] ?? '', ...words];
  const env = { ...process.env, NO_COLOR: '1' };
  const { code, printed, stderr } = await printedBy({ command: process.execPath, args, env, ...LIMITS, signal });
  return `${printed.toString('utf8')}${stderr}exit code: ${code}`;
}

/** The last whole lines of a file, or of the journal of the unit that reads this configuration. */
async function logOf(file: string | undefined, configFile: string, signal: AbortSignal): Promise<string> {
  const instance = /^\/etc\/agent\/([\w.-]+)\/config\.yaml$/.exec(configFile)?.[1];
  const unit = instance === undefined ? 'agent.service' : `agent@${instance}.service`;
  const [command, args, place] =
    file === undefined
      ? ['journalctl', ['--unit', unit, '--lines', LOG_LINES, ...JOURNAL_FORMAT], `the journal of ${unit}`]
      : ['tail', ['-n', LOG_LINES, path.resolve(file)], file];
  const failed = (message: string) => {
    const hint = 'if the standard error of the agent goes to a file, name it: agent report --log FILE';
    return new JobtailError('local-io', `cannot read ${place}: ${message}`, { hint });
  };
  const { code, printed, stderr } = await printedBy({ command, args, ...LIMITS, signal }).catch((thrown) => {
    throw failed(asJobtailError(thrown).message);
  });
  if (code !== 0) throw failed(`${command} ended with exit code ${code}: ${stderr.trim()}`);
  if (printed.length === 0) throw failed('it has no line');
  return printed.toString('utf8');
}
