import { expect, it } from 'vitest';
import type { Generations } from '../../../../src/view/contract/addresses.ts';
import type { OpenedFile } from '../../../../src/view/page/route.ts';
import { stubPage } from '../../../support/view-models.ts';

// Imported by name: the page has types of its own, which the compiler checks elsewhere.
const GENERATIONS = '../../../../src/view/page/job/generations.tsx';

type Resolve = (opened: OpenedFile, generations: Generations | undefined) => object | undefined;

it('a link leads to the generation that it names, to the present one where that is gone, and waits to know', async () => {
  stubPage();
  const { resolved } = (await import(GENERATIONS)) as { resolved: Resolve };
  const former = [{ version: 'f7-8', generation: 2, bytes: 5 }];
  const generations: Generations = { now: 'g3', former, began: [] };
  const place = { taskId: '9', file: 'stdout', at: 4, to: 7 };
  const of = (version?: string, known: Generations | undefined = generations) =>
    resolved({ ...place, ...(version !== undefined && { version }) }, known);
  expect(of()).toEqual({ opened: place, isGone: false });
  expect(resolved(place, undefined)).toEqual({ opened: place, isGone: false });
  expect(resolved({ ...place, version: 'g3' }, undefined)).toBeUndefined();
  // The present one grows, whatever its link is called.
  expect(of('g3')).toEqual({ opened: place, isGone: false });
  for (const version of ['g2', 'f7-8'])
    expect(of(version)).toEqual({ opened: { ...place, version: 'f7-8' }, isGone: false });
  // Its lines are not those of the link.
  expect(of('g1')).toEqual({ opened: { taskId: '9', file: 'stdout' }, isGone: true });
});
