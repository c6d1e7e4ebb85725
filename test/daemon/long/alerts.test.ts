/** The alert rules and the dashboard, held against what a scrape has. */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { needs } from '../../support/needs.ts';
import { promtool, scrape } from '../../support/service-scrape.ts';

const DOCS = fileURLToPath(new URL('../../../docs/', import.meta.url));
const TESTS_OF_RULES = fileURLToPath(new URL('alerts.test.yaml', import.meta.url));

/** Series in an expression, with the label that selects them. */
const seriesIn = (expr: string) =>
  [...expr.matchAll(/\b(?:jobtail|nodejs|process)_[a-z0-9_]+(?:\{(?!job=)\w+="\w+"\})?/g)].map(([series]) => series);

async function expectKnown(expressions: readonly string[]): Promise<void> {
  const text = await scrape();
  const used = [...new Set(expressions.flatMap(seriesIn))];
  expect(used.length).toBeGreaterThan(5);
  const there = (series: string) =>
    text.split('\n').some((line) => line.startsWith(series) && /^[ {]/.test(line.slice(series.length)));
  expect(used.filter((series) => !there(series))).toEqual([]);
}

interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

const { groups } = parse(fs.readFileSync(`${DOCS}alerts.yaml`, 'utf8')) as { groups: { rules: AlertRule[] }[] };
const RULES = groups.flatMap(({ rules }) => rules);

describe('the alert rules', () => {
  it('look at metrics that a scrape has, and say what to do', async () => {
    await expectKnown(RULES.map(({ expr }) => expr));
    for (const { alert, annotations } of RULES) {
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
    expect(new Set(shown.map(({ alertname }) => alertname))).toEqual(new Set(RULES.map(({ alert }) => alert)));
  });

  it('are valid, and fire when they should', needs('promtool'), () => {
    expect(promtool(['check', 'rules', `${DOCS}alerts.yaml`])).toMatchObject({ status: 0 });
    expect(promtool(['test', 'rules', TESTS_OF_RULES])).toMatchObject({ status: 0 });
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
