/** The alert rules and the dashboard, held against what a scrape has. */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { needs } from '../../support/needs.ts';
import { alertRules, alertsOf, metricsOf, promtool, scrape, TOTALS } from '../../support/service-scrape.ts';

const DOCS = fileURLToPath(new URL('../../../docs/', import.meta.url));
const TESTS_OF_RULES = fileURLToPath(new URL('alerts.test.yaml', import.meta.url));

/** Names of metrics in an expression. */
const namesIn = (expr: string) => [...expr.matchAll(/\b(?:jobtail|nodejs|process)_[a-z0-9_]+/g)].map(([name]) => name);

async function expectKnown(expressions: readonly string[]): Promise<void> {
  const text = await scrape();
  const used = [...new Set(expressions.flatMap(namesIn))];
  expect(used.length).toBeGreaterThan(5);
  const there = (name: string) => new RegExp(`^${name}[{ ]`, 'm').test(text);
  expect(used.filter((name) => !there(name))).toEqual([]);
}

describe('the alert rules', () => {
  it('look at metrics that a scrape has, and say what to do', async () => {
    await expectKnown(alertRules().map(({ expr }) => expr));
    for (const { alert, annotations } of alertRules()) {
      expect(annotations, alert).toMatchObject({ summary: expect.any(String), action: expect.any(String) });
    }
  });

  it('are each shown firing', () => {
    const { tests } = parse(fs.readFileSync(TESTS_OF_RULES, 'utf8')) as {
      tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[];
    };
    const shown = tests
      .flatMap(({ alert_rule_test: expected }) => expected)
      .filter(({ exp_alerts: alerts }) => alerts.length > 0);
    expect(new Set(shown.map(({ alertname }) => alertname))).toEqual(new Set(alertRules().map(({ alert }) => alert)));
  });

  it('are valid, and fire when they should', needs('promtool'), () => {
    expect(promtool(['check', 'rules', `${DOCS}alerts.yaml`])).toMatchObject({ status: 0 });
    expect(promtool(['test', 'rules', TESTS_OF_RULES])).toMatchObject({ status: 0 });
  });

  it('find in a scrape what is wrong, and nothing else', needs('promtool'), async () => {
    expect(alertsOf(await scrape())).toEqual(['JobtailJobsFailing', 'JobtailResultsFail']);
    const healthy = { ...TOTALS, failingJobs: 0, results: { synced: 42 } };
    expect(alertsOf(await metricsOf(() => healthy).text())).toEqual([]);
  });
});

describe('the dashboard', () => {
  const dashboard = JSON.parse(fs.readFileSync(`${DOCS}grafana-dashboard.json`, 'utf8')) as {
    panels: { title: string; gridPos: { x: number; y: number; w: number; h: number }; targets: { expr: string }[] }[];
  };

  it('looks at metrics that a scrape has', async () => {
    await expectKnown(dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)));
  });

  it('has no panels that lie upon each other', () => {
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)} ${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  });
});
