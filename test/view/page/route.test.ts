import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hashOf, type Route, routeOf } from '../../../src/view/page/route.ts';
import { anyCharacter, numRuns } from '../../support/property-runs.ts';

describe('what the page shows', () => {
  it.each<[string, Route]>([
    ['', { page: 'jobs' }],
    ['#/', { page: 'jobs' }],
    ['#/service', { page: 'service' }],
    ['#/search', { page: 'search', text: '', regex: false }],
    ['#/search?text=a%26b&regex=1', { page: 'search', text: 'a&b', regex: true }],
    ['#/job/501', { page: 'live', jobId: '501', files: [] }],
    [
      '#/job/501/live?file=9001%2Fstdout%404096',
      { page: 'live', jobId: '501', files: [{ taskId: '9001', file: 'stdout', at: 4096 }] },
    ],
    [
      '#/job/501/live?file=9001%2Fstdout%407-30%3Ag2',
      { page: 'live', jobId: '501', files: [{ taskId: '9001', file: 'stdout', at: 7, to: 30, version: 'g2' }] },
    ],
    ['#/job/501/results', { page: 'results', jobId: '501', name: undefined }],
    ['#/job/501/results?name=%2Fa%26b+c.csv', { page: 'results', jobId: '501', name: '/a&b c.csv' }],
  ])('%j', (hash, route) => {
    expect(routeOf(hash)).toEqual(route);
    expect(routeOf(hashOf(route))).toEqual(route);
  });

  it.each(['#javascript:alert(1)', '#/job/javascript:alert(1)', '#/job/../501', '#//evil.example.org', '#/job/'])(
    '%j leads to the jobs',
    (hash) => {
      expect(routeOf(hash)).toEqual({ page: 'jobs' });
    },
  );

  it('takes files for what they are', () => {
    const files = ['501/stdout', 'x/stdout', '9001/../../etc', '9001/stdout@x', '9001/log@7-30:some:version'];
    const query = new URLSearchParams(files.map((file): [string, string] => ['file', file]));
    expect(routeOf(`#/job/501/live?${query}`)).toEqual({
      page: 'live',
      jobId: '501',
      files: [
        { taskId: '501', file: 'stdout', at: undefined, to: undefined, version: undefined },
        { taskId: '9001', file: 'log', at: 7, to: 30, version: 'some:version' },
      ],
    });
  });

  it('leads nowhere but to a part of the page, whatever the address says', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (hash) => {
        expect(hashOf(routeOf(hash))).toMatch(/^#\/[a-z0-9/?=%&A-Z+._*@:-]*$/);
      }),
      numRuns(300),
    );
  });
});
