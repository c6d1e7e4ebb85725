/** `agent notify`: lists undelivered notifications, and sends test events. */
import type { Config } from '../../config/config.ts';
import { keepSecrets } from '../../config/secrets.ts';
import { asJobtailError, EXIT, JobtailError } from '../../errors.ts';
import { jsonReport } from '../../json-report.ts';
import { newEvent } from '../../notify/events.ts';
import { notifyHttp } from '../../notify/http.ts';
import { sourceOf } from '../../notify/notifications.ts';
import { Rule } from '../../notify/rules.ts';
import { send } from '../../notify/senders.ts';
import { countOf, showAge } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import { Secrets } from '../../redact.ts';
import { configurationAsOwner, type JsonOption } from '../configuration.ts';
import { withJobs } from '../followed-jobs.ts';
import { untilStopped } from '../process.ts';

interface NotifyOptions extends JsonOption {
  readonly list?: boolean;
  readonly test?: boolean;
  readonly quiet?: boolean;
}

export async function notify(options: NotifyOptions): Promise<void> {
  const { list = false, test = false, json = false } = options;
  if (list === test)
    throw new JobtailError('usage', 'either --list or --test is needed', { hint: 'see agent notify --help' });
  const config = await configurationAsOwner(options);
  if (test) await testRules(config, options);
  else await listDeliveries(config, json);
}

async function testRules(config: Config, { json = false, quiet = false }: NotifyOptions): Promise<void> {
  const rules = config.notify.map((settings) => new Rule(settings));
  if (rules.length === 0) {
    const hint = 'add a rule, such as notify: [{on: [failed], mail: you@example.org}]';
    throw new JobtailError('config', 'the configuration has no notify rules', { hint });
  }
  const http = notifyHttp(config);
  const secrets = new Secrets();
  const results: { target: string; error: string | null; hint: string | null }[] = [];
  try {
    await untilStopped(async (signal) => {
      await keepSecrets(config, secrets, { env: process.env, signal, withPrograms: false });
      for (const rule of rules) {
        const event = newEvent('test', Date.now(), { reason: 'agent notify --test' });
        const sent = send(rule, event, { http, source: sourceOf(config), secrets }, signal);
        const failure = await sent.then(() => undefined, asJobtailError);
        if (failure?.code === 'aborted') throw failure;
        const result = { target: rule.target, error: failure?.message ?? null, hint: failure?.hint ?? null };
        results.push(result);
        if (!json) (failure !== undefined && quiet ? process.stderr : process.stdout).write(resultText(result));
      }
    });
  } finally {
    await http.close();
  }
  if (json) process.stdout.write(jsonReport({ rules: results }));
  if (results.some(({ error }) => error !== null)) process.exitCode = EXIT.failed;
}

function resultText({ target, error, hint }: { target: string; error: string | null; hint: string | null }): string {
  if (error === null) return `${printable(target)}: delivered\n`;
  return `${printable(target)}: failed: ${printable(error)}\n${hint === null ? '' : `  ${printable(hint)}\n`}`;
}

async function listDeliveries(config: Config, json: boolean): Promise<void> {
  const list = await withJobs(config, (jobs) => jobs.deliveries());
  if (json) return void process.stdout.write(jsonReport(list));
  for (const [index, { on, target }] of list.rules.entries())
    process.stdout.write(`rule ${index + 1}: ${on.join(', ')}: ${printable(target)}\n`);
  const lines = list.deliveries.map(({ rule, event, target, madeAt, nextAt, attempts, error }) => {
    const what = `${event.type}${event.count > 1 ? ` (${event.count})` : ''}${event.jobId === undefined ? '' : ` job ${event.jobId}`}`;
    const next =
      nextAt === null ? 'given up' : nextAt <= Date.now() ? 'due' : `next attempt in ${showAge(nextAt - Date.now())}`;
    const failed = error === null ? '' : `: ${printable(error)}`;
    const tries = attempts === 0 ? '' : `, ${countOf(attempts, 'attempt')} failed`;
    const by = rule === null ? '' : `rule ${rule}: `;
    return `${by}${printable(what)} to ${printable(target)}: ${showAge(Date.now() - madeAt)} old${tries}, ${next}${failed}\n`;
  });
  process.stdout.write(lines.length === 0 ? 'nothing waits to be delivered\n' : lines.join(''));
}
