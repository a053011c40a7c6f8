/** Owns the fields of forms, each with its label. */
import { element, freshId } from './element.ts';
import type { ModelInfo } from './info.ts';

/** A field and its label. */
export interface Field<T extends HTMLElement> {
  readonly view: HTMLElement;
  readonly input: T;
}

/** A text of several lines. */
export function textField(label: string, value: string, rows: number, hint = ''): Field<HTMLTextAreaElement> {
  const id = freshId('field');
  const input = element('textarea', { id, rows: String(rows), spellcheck: 'false', autocomplete: 'off' });
  input.value = value;
  const hintText = hint === '' ? null : element('span', { class: 'hint' }, ` ${hint}`);
  return { input, view: element('div', { class: 'field' }, element('label', { for: id }, label, hintText), input) };
}

/** A text of one line. */
export function lineField(label: string, value: string): Field<HTMLInputElement> {
  const id = freshId('field');
  const input = element('input', { id, type: 'text', spellcheck: 'false', autocomplete: 'off' });
  input.value = value;
  return { input, view: element('div', { class: 'field' }, element('label', { for: id }, label), input) };
}

type Choices = readonly (readonly [value: string, text: string])[];

/** Choices as a list holds them. */
export const choices = (list: Choices): HTMLOptionElement[] =>
  list.map(([value, text]) => element('option', { value }, text));

/** A choice; the first one is chosen. */
export function choiceField(label: string, list: Choices): Field<HTMLSelectElement> {
  const id = freshId('field');
  const input = element('select', { id }, ...choices(list));
  return { input, view: element('div', { class: 'field short' }, element('label', { for: id }, label), input) };
}

/** A choice of the models of a task. */
export const modelField = (models: readonly ModelInfo[]): Field<HTMLSelectElement> =>
  choiceField(
    'Model',
    [...new Set(models.map(({ id }) => id))].map((id) => [id, id]),
  );

/** The member that names the chosen model; none where there is no choice. */
export const modelMember = ({ input }: Field<HTMLSelectElement>): { readonly model?: string } =>
  input.options.length > 1 ? { model: input.value } : {};

/** The same for methods of which RCP/1 knows no model. */
export function vendorMember(field: Field<HTMLSelectElement>): { readonly 'x-trivec'?: { readonly model: string } } {
  const { model } = modelMember(field);
  return model === undefined ? {} : { 'x-trivec': { model } };
}

/** A choice of what a text is. */
export const kindField = (): Field<HTMLSelectElement> =>
  choiceField('Kind', [
    ['', 'not said'],
    ['query', 'query'],
    ['document', 'document'],
  ]);

/** Fields beside each other. */
export const inRow = (...fields: readonly Field<HTMLElement>[]): HTMLElement =>
  element('div', { class: 'row' }, ...fields.map(({ view }) => view));
