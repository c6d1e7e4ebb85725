/** The page on a large screen, light and dark: without serious findings of axe. */
import { describe, it } from 'vitest';
import { needs } from '../../../../support/needs.ts';
import { expectAccessible } from '../../../../support/view-jobs.ts';

describe('the page', needs('chromium'), () => {
  it.for(['light', 'dark'] as const)('has no serious finding of axe and fits: %s', async (colorScheme, context) => {
    await expectAccessible(context, { colorScheme, width: 1280, height: 800 });
  });
});
