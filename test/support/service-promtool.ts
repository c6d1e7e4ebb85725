/** promtool, which comes with Prometheus: what it says of a scrape, and of alert rules on one. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const RULES_FILE = fileURLToPath(new URL('../../docs/alerts.yaml', import.meta.url));
/** Longer than any rule waits. */
const HOURS = 3;

interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

export function alertRules(): AlertRule[] {
  const { groups } = parse(fs.readFileSync(RULES_FILE, 'utf8')) as { groups: { rules: AlertRule[] }[] };
  return groups.flatMap(({ rules }) => rules);
}

export function promtool(
  args: readonly string[],
  input = '',
): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' });
  return { status, said: `${stdout}${stderr}` };
}

/** What `promtool check metrics` has against metrics of ours; the names of the others are prom-client's choice. */
export function complaintsOf(scrape: string): string[] {
  const { status, said } = promtool(['check', 'metrics'], scrape);
  // 3 is for complaints about style; anything else is a text that Prometheus could not read.
  if (status !== 0 && status !== 3) return [said];
  return said.split('\n').filter((line) => line.includes('jobtail_'));
}

/** The alerts that fire while the numbers stay for hours as they are in a scrape. */
export function alertsOf(scrape: string): string[] {
  const samples = scrape.split('\n').flatMap((line) => {
    const [, name, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    // A summary of nothing yet is NaN, which promtool has no way to write.
    return name === undefined || !Number.isFinite(Number(value)) ? [] : [{ name, labels, value: Number(value) }];
  });
  const series = [...samples, { name: 'up', labels: '', value: 1 }].map(({ name, labels, value }) => ({
    series: `${name}{${[...(labels === '' ? [] : [labels]), 'job="jobtail"', 'instance="a"'].join(',')}}`,
    values: `${value}x${HOURS * 60}`,
  }));
  const names = alertRules().map(({ alert }) => alert);
  const { status, said } = testRules({
    rule_files: [RULES_FILE],
    tests: [
      {
        interval: '1m',
        input_series: series,
        alert_rule_test: names.map((alertname) => ({ alertname, eval_time: `${HOURS}h`, exp_alerts: [] })),
      },
    ],
  });
  const fired = names.filter((name) => said.includes(`alertname: ${name},`));
  if (status !== 0 && fired.length === 0) throw new Error(said);
  return fired;
}

function testRules(test: unknown): ReturnType<typeof promtool> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'jobtail-promtool-'));
  try {
    const file = path.join(directory, 'rules.test.yaml');
    // JSON is YAML.
    fs.writeFileSync(file, JSON.stringify(test));
    return promtool(['test', 'rules', file]);
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}
