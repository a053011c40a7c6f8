/** Owns the texts that two precisions of a model are compared on: ordinary sentences of several lengths and subjects. */

/** Questions and statements, each followed by one that it has to do with. */
export const sampleTexts: readonly string[] = [
  'How do I reset the password of my account?',
  'Open the settings, choose "Security" and press "Forgot password"; a link will be sent to your address.',
  'What time does the museum close on Sundays?',
  'The museum is open from ten to six, Thursdays until nine, and closed on Mondays.',
  'Which river flows through Vienna?',
  'Vienna lies on the Danube, where the foothills of the Alps meet the plains of Hungary.',
  'The committee postponed its decision on the new railway line until after the election.',
  'After a long debate the members agreed to wait for the vote in autumn before they spend public money on tracks.',
  'How long should I boil an egg?',
  'A medium egg from the refrigerator needs about six minutes for a soft yolk and ten for a hard one, counted from the ' +
    'moment at which the water boils again. Put it into cold water afterwards, so that it does not go on cooking.',
  'Why is the sky blue?',
  'Molecules of air scatter short waves of light far more strongly than long ones, so that blue reaches the eye from ' +
    'every direction, while red and yellow come almost straight from the sun.',
  'The patient reported mild headaches and a slight fever over the past three days.',
  'There were no signs of infection; rest, fluids and a second visit within a week were recommended.',
  'Our quarterly revenue grew by eight percent, mostly because of higher sales in southern Europe.',
  'Costs rose as well: shipping became more expensive, and two warehouses had to be rented for the winter season.',
  'He tuned the violin twice before the concert began.',
  'The first movement opens quietly, with the strings alone, before horns and drums take up the theme.',
  'function returns the largest element of an array, or null when the array is empty',
  'Sorting a list of n numbers by comparing pairs takes at least on the order of n log n steps in the worst case.',
  'It rained all night, and in the morning the path along the lake was under water.',
  'Hikers are advised to use the upper trail while the lower one is flooded.',
  'red shoes size 42 leather',
  'Handmade leather shoes in dark red, with a flat heel and a rubber sole, available in sizes 36 to 44.',
];
